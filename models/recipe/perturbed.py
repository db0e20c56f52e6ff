"""Writes the held-out split with something changed that training never showed, for `fixpoint eval family --data FILE`.

    python3 perturbed.py names|numbers|inputs|phrasings OUT.jsonl --tasks 1000 --seed 4711

names      other function names
numbers    constants from the gap that training leaves past each step's range (family.CONSTANT_GAP)
inputs     larger numbers, other words
phrasings  other introductions and joints between the steps, and `values` where training says `numbers` and the reverse

A model that looks answers up, or knows its task by such things, does worse here. With names and phrasings the programs and
tests are those of held_out.py at the same count and seed; with numbers and inputs a task whose tests no longer tell mistakes apart
is drawn anew.
"""
import argparse
import json
import re

import family
from held_out import rows

NAMES = "g munge derive rework handle evaluate reply render figure chore duty effect".split()
WORDS = ("lemon ann Fox cow Delta wolf ho Howdy snow pie lake rope Niven Earth radar Birch moss king Blue star oak2 up3 "
         "viola me Xenon yak zip b7 c45 low 9pm Blend info exam script ring").split()
INTRODUCTIONS = ["Please give me `{f}({a})` in Python.", "Code `{f}({a})` for me.", "I need the Python function `{f}({a})`.",
                 "Provide a function `{f}({a})`."]
OTHER_NOUN = {"numbers": "values", "values": "numbers", "number": "value", "value": "number"}


def other_constant(name, rng):
    constants = family.PRIMITIVES[name].constants
    return rng.choice(list(constants)[:family.CONSTANT_GAP]) + len(constants) if constants else None


def other_nouns(text):
    return re.sub(r"\b(numbers?|values?)\b", lambda m: OTHER_NOUN[m.group()], text)


def other_sentences(phrases, rng):
    phrases = [other_nouns(p) for p in phrases]
    if len(phrases) == 1:
        return family.capital(phrases[0]) + "."
    style = rng.random()
    if style < 0.4:
        return "Start: " + phrases[0] + "; afterwards " + "; afterwards ".join(phrases[1:]) + "."
    if style < 0.7:
        return " ".join(f"({i + 1}) {family.capital(p)}." for i, p in enumerate(phrases))
    return family.capital(", and then ".join(phrases)) + "."


def perturb(what):
    if what == "names":
        family.FUNCTION_NAMES = NAMES
    elif what == "numbers":
        family.random_constant = other_constant
    elif what == "inputs":
        family.LOWEST, family.HIGHEST, family.NUMBER_RANGES, family.WORDS = (-30, -12, 2, 11), 40, ((31, 60), (31, 60)), WORDS
    else:
        family.INTRODUCTIONS, family.sentences = INTRODUCTIONS, other_sentences


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=("names", "numbers", "inputs", "phrasings"))
    p.add_argument("out")
    p.add_argument("--tasks", type=int, default=1000)
    p.add_argument("--seed", type=int, default=4711)
    a = p.parse_args()
    perturb(a.what)
    with open(a.out, "w") as file:
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows(a.tasks, a.seed))


if __name__ == "__main__":
    main()
