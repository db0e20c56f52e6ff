"""Practice: what the model gets wrong is asked for more often.

Each phrase of each primitive is asked for in a few short training tasks. A model of this size learns most of them early and a few
(a constant that must be copied, `ascending` or `descending`) very late: drawn evenly, those few are a small part of what it reads.
"""
import itertools
import json
import os
import random

import torch

from bugs import parse
from family import BY_INPUT, NAMES, PRIMITIVES, described, is_held, tests_in_time, training_constant, training_name
from inference import generate
from prompts import program_in, task_message, with_program_start

TASKS_A_PHRASE = 4
ERROR_WEIGHT = 12  # a phrase that is always wrong comes up so many times more often than one that never is


class Practice:
    def __init__(self, errors):
        """`errors`: for each phrase the share of tasks in which its step came out wrong."""
        self.errors = errors
        self.phrases = {text: 1 + ERROR_WEIGHT * share for text, share in errors.items()}
        self.steps = {name: sum(map(self.phrases.get, PRIMITIVES[name].phrases)) / len(PRIMITIVES[name].phrases) for name in NAMES}

    def step(self, names, rng):
        return rng.choices(names, [self.steps[name] for name in names])[0]

    def phrase(self, phrases, rng):
        return rng.choices(phrases, [self.phrases[text] for text in phrases])[0]

    def save(self, path):
        with open(path + ".part", "w") as f:
            json.dump(self.errors, f, indent=0)
        os.replace(path + ".part", path)

    @staticmethod
    def load(path):
        return Practice(json.load(open(path)))

    def __str__(self):
        worst = sorted(self.errors, key=self.errors.get)[:-9:-1]
        return f"{100 * sum(self.errors.values()) / len(self.errors):.1f} % of steps wrong, most of all " + "; ".join(worst)


class Asked:
    """Chooses one phrase for one step, any for the others: a stand-in for Practice where a phrase is probed."""
    def __init__(self, text):
        self.text = text

    def phrase(self, phrases, rng):
        return self.text if self.text in phrases else rng.choice(phrases)


def task_with(name, text, rng):
    """A plain training task of two steps, one of them `name` in the words `text`; None where the draw is of no use."""
    other = rng.choice(NAMES)
    names = (name, other) if PRIMITIVES[other].takes == PRIMITIVES[name].gives else (other, name)
    if other == name or names[1] not in BY_INPUT.get(PRIMITIVES[names[0]].gives, ()):
        return None
    program = [(step, training_constant(step, rng)) for step in names]
    if is_held(program):
        return None
    function = training_name(rng)
    tests = tests_in_time(program, function, rng)
    return tests and described(program, function, tests, [False] * len(program), rng, practice=Asked(text))


@torch.no_grad()
def measure(network, tokenizer, seed):
    """A greedy first draft for TASKS_A_PHRASE tasks a phrase; returns the Practice that follows."""
    rng, asked = random.Random(seed), []
    for name in NAMES:
        for text in PRIMITIVES[name].phrases:
            tasks = filter(None, (task_with(name, text, rng) for _ in range(100 * TASKS_A_PHRASE)))
            asked += [(name, text, task) for task in itertools.islice(tasks, TASKS_A_PHRASE)]
    network.eval()
    answers = generate(network, [tokenizer.prompt([("user", task_message(task))]) for _, _, task in asked], tokenizer.im_end)
    network.train()
    wrong, total = {}, {}
    for (name, text, task), ids in zip(asked, answers):
        program = parse(program_in(with_program_start(tokenizer.decode(ids), task.function))) or []
        total[text] = total.get(text, 0) + 1
        wrong[text] = wrong.get(text, 0) + (next(step for step in task.program if step[0] == name) not in program)
    # A quarter of an error in one more task, so that four tasks do not settle it.
    return Practice({text: (wrong.get(text, 0) + 0.25) / (total.get(text, 0) + 1) for name in NAMES for text in PRIMITIVES[name].phrases})
