"""Pairs of values with what the recipe says of their difference, as JSON lines: write_differences.py COUNT SEED"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/recipe"))
from difference import difference  # noqa: E402

LETTERS = "aabbcXYZ -_.+1('\"\\é€😀"
rng = random.Random(int(sys.argv[2]))


def number():
    return rng.choice([rng.randint(-4, 9), rng.randint(-40, 99), rng.randint(-10 ** 16, 10 ** 16)][: rng.choice((1, 2, 2, 2, 3))])


def text():
    return "".join(rng.choice(LETTERS) for _ in range(rng.randint(0, 7)))


def sequence(part):
    return [part() for _ in range(rng.randint(0, 6))]


def value():
    return rng.choice((number, text, lambda: sequence(number), lambda: sequence(text), lambda: sequence(text), lambda: sequence(number),
                       lambda: sequence(value), lambda: rng.random() < 0.5, lambda: None, lambda: 1.5, lambda: tuple(sequence(number)),
                       lambda: {1: 2}, lambda: rng.choice(("ab", "é")) * rng.choice((40, 600)), lambda: [7] * rng.choice((40, 1100))))()


def changed(x):
    """Something that is near to a value in one of the ways that have words."""
    if type(x) is int:
        return rng.choice((x + rng.randint(-5, 5), -x, x * 3, x * 5 // 2))
    if type(x) is str:
        k = rng.randint(1, 3)
        return rng.choice((x.upper(), x.lower(), x.swapcase(), x.title(), x[::-1], x[k:], x[:-k], x + text(), text() + x, x.replace(" ", "-"),
                           "".join(sorted(x)), "(" + x + ")", "[" + x + "]", x.replace("a", "b"), x.replace(" ", "")))
    if type(x) in (list, tuple) and x:
        k, ints = rng.randint(1, 4), all(type(y) is int for y in x)
        turned = rng.choice((x[::-1], x[k:] + x[:k], x[k:], x[:-k], x + x[:k], x[::2], [changed(y) for y in x], list(dict.fromkeys(map(repr, x))),
                             [x[0]] + [changed(y) for y in x[1:]], [x[0]] * len(x)))
        if ints and rng.random() < 0.6:
            turned = rng.choice(([y + k for y in x], [-y for y in x], [y * k for y in x], sorted(x), sorted(x, reverse=True), sorted(x, key=abs),
                                 sorted(set(x)), list(dict.fromkeys(x))))
        elif not ints and rng.random() < 0.5:
            texts = [y if type(y) is str else "b" for y in x]
            turned = rng.choice(([y.upper() for y in texts], [y.lower() for y in texts], sorted(texts), sorted(texts, key=len),
                                 sorted(texts, reverse=True), [y.swapcase() for y in texts], [y.title() for y in texts]))
        return type(x)(turned)
    return value()


for _ in range(int(sys.argv[1])):
    a = value()
    b = changed(a) if rng.random() < 0.85 else value()
    if rng.random() < 0.5:
        a, b = b, a
    print(json.dumps({"expected": repr(a), "got": repr(b), "words": difference(a, b)}))
