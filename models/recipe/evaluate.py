"""Held-out evaluation in the trainer: self-debugging beside its controls.

    python3 evaluate.py model.pt tokenizer.json --tasks 200 --what debug,simple,shuffled,resample

Every task holds a pair of primitives that no training program has. Rates are of all tasks, after round 1, 2, 3, 4.
"""
import argparse
import random
import time

import torch

from bugs import is_comment
from family import make_task
from inference import generate, load
from prompts import feedback_message, program_in, task_message, with_program_start
from running import run_tests
from tokenizer import Tokenizer

STEPS = ((2, 0.5), (3, 0.35), (4, 0.15))


def held_out_tasks(count, seed):
    rng = random.Random(seed)
    return [make_task(rng, steps=steps, held=True) for steps, share in STEPS for _ in range(round(count * share))]


def without_comments(code):
    return "\n".join(line for line in code.split("\n") if not is_comment(line))


class Evaluation:
    def __init__(self, network, tokenizer, tasks):
        self.network, self.tokenizer, self.tasks = network, tokenizer, tasks

    def answers(self, rows, conversations, temperature):
        prompts = [self.tokenizer.prompt(c) for c in conversations]
        ids = generate(self.network, prompts, self.tokenizer.im_end, temperature)
        self.written += sum(map(len, ids))
        return [with_program_start(self.tokenizer.decode(i), self.tasks[row].function) for row, i in zip(rows, ids)]

    def rates(self, solved, rounds):
        return [100 * sum(0 < s <= r for s in solved) / len(solved) for r in range(1, rounds + 1)]

    def debug(self, feedback="full", rounds=4, temperature=0.0):
        """`feedback`: full, simple (the verdict alone) or shuffled (another task's). A repeated program is drawn again."""
        self.written = 0
        conversations = [[("user", task_message(t))] for t in self.tasks]
        solved, tried = [0] * len(self.tasks), [set() for _ in self.tasks]
        for r in range(1, rounds + 1):
            todo = [i for i, s in enumerate(solved) if not s]
            texts = self.answers(todo, [conversations[i] for i in todo], temperature)
            again = [j for j, i in enumerate(todo) if without_comments(program_in(texts[j])) in tried[i]]
            if again:
                rows = [todo[j] for j in again]
                for j, text in zip(again, self.answers(rows, [conversations[i] for i in rows], 0.8)):
                    texts[j] = text
            failures = {}
            for i, text in zip(todo, texts):
                code, task = program_in(text), self.tasks[i]
                tried[i].add(without_comments(code))
                passed, lines, kind = run_tests(code, task.function, task.tests)
                conversations[i].append(("assistant", text))
                if passed:
                    solved[i] = r
                else:
                    failures[i] = (kind, lines)
            self.tell(failures, conversations, feedback)
        return solved, self.rates(solved, rounds)

    def tell(self, failures, conversations, feedback):
        order = list(failures)
        for j, i in enumerate(order):
            source = order[(j + 1) % len(order)] if feedback == "shuffled" else i
            kind, lines = failures[source]
            mine, theirs = self.tasks[i].function, self.tasks[source].function
            lines = [line.replace(theirs + "(", mine + "(") for line in lines]
            full = feedback != "simple"
            conversations[i].append(("user", feedback_message(kind, lines, full, full)))

    def resample(self, temperature, attempts=6):
        self.written = 0
        solved = [0] * len(self.tasks)
        for r in range(1, attempts + 1):
            todo = [i for i, s in enumerate(solved) if not s]
            texts = self.answers(todo, [[("user", task_message(self.tasks[i]))] for i in todo], 0.0 if r == 1 else temperature)
            for i, text in zip(todo, texts):
                if run_tests(program_in(text), self.tasks[i].function, self.tasks[i].tests)[0]:
                    solved[i] = r
        return solved, self.rates(solved, attempts)


def breakdown(tasks, solved, rounds):
    for name, key in (("plain or vague", lambda t: "vague" if any(t.vague) else "plain"), ("steps", lambda t: len(t.program))):
        for value in sorted({key(t) for t in tasks}):
            rows = [s for t, s in zip(tasks, solved) if key(t) == value]
            rates = " ".join(f"{100 * sum(0 < s <= r for s in rows) / len(rows):.1f}" for r in range(1, rounds + 1))
            print(f"    {name} {value}: {rates}  (of {len(rows)})")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("checkpoint")
    p.add_argument("tokenizer")
    p.add_argument("--tasks", type=int, default=200)
    p.add_argument("--seed", type=int, default=999)
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--what", default="debug,simple,shuffled,resample")
    p.add_argument("--threads", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    tasks = held_out_tasks(a.tasks, a.seed)
    evaluation, start = Evaluation(load(a.checkpoint), Tokenizer.load(a.tokenizer), tasks), time.time()

    def report(name, rates):
        print(f"{name}: {' '.join(f'{r:.1f}' for r in rates)}  ({evaluation.written} tokens written, {time.time() - start:.0f} s)",
              flush=True)

    for what in a.what.split(","):
        if what == "resample":
            for temperature in (0.4, 0.8):
                report(f"resampling at {temperature}", evaluation.resample(temperature)[1])
            continue
        solved, rates = evaluation.debug({"debug": "full"}.get(what, what), a.rounds)
        report({"debug": "self-debugging"}.get(what, what + " feedback"), rates)
        if what == "debug":
            breakdown(tasks, solved, a.rounds)


if __name__ == "__main__":
    main()
