"""Conversations in which the model's own wrong programs are explained and put right.

The model answers training tasks at a temperature; half of what fails goes on to a second attempt. A mistake is kept with its
program. Each time that it is learnt from, the task is drawn anew around that program, the mistake is run for its real feedback, and
the true explanation follows from parsing it: otherwise a few hundred conversations would be learnt by heart.
"""
import json
import os
import random

import torch

from bugs import LONGEST_LINE, ONLY_VERDICT, attempt, explain_text, learnt, parse, written
from family import make_task, redrawn
from inference import generate
from prompts import feedback_message, fenced, program_in, task_message, with_program_start
from running import run_tests

TEMPERATURES = (0.6, 0.8, 1.0)
SECOND_ATTEMPTS = 0.5


def failures_of(tasks, conversations, texts, rng):
    """Appends the attempts and their feedback; returns the indexes of those that failed in a way that feedback helps."""
    failed = []
    for i, (task, messages, text) in enumerate(zip(tasks, conversations, texts)):
        passed, lines, kind = run_tests(program_in(text), task.function, task.tests)
        if passed or kind in ("timeout", "error") or max(map(len, lines), default=0) > LONGEST_LINE:
            continue
        only_verdict = rng.random() < ONLY_VERDICT
        messages += [("assistant", text, 0), ("user", feedback_message(kind, lines, not only_verdict, not only_verdict), 0)]
        failed.append(i)
    return failed


def prompt_length(tokenizer, messages):
    return len(tokenizer.prompt([(role, text) for role, text, _ in messages]))


def attempts(network, tokenizer, tasks, conversations, temperature):
    prompts = [tokenizer.prompt([(role, text) for role, text, _ in messages]) for messages in conversations]
    return [with_program_start(tokenizer.decode(ids), task.function)
            for task, ids in zip(tasks, generate(network, prompts, tokenizer.im_end, temperature))]


def row_of(task, conversation):
    return dict(program=task.program, vague=task.vague, attempts=[text for role, text, _ in conversation if role == "assistant"])


@torch.no_grad()
def collect(network, tokenizer, tasks_count, seed, path):
    """Writes what was asked and what the model answered to `path` as JSON lines; returns their number."""
    rng, out = random.Random(seed), []
    network.eval()
    for temperature in TEMPERATURES:
        tasks = [make_task(rng, held=False, vague_share=0.6) for _ in range(tasks_count // len(TEMPERATURES))]
        conversations = [[("user", task_message(task), 0)] for task in tasks]
        failed = failures_of(tasks, conversations, attempts(network, tokenizer, tasks, conversations, temperature), rng)
        tasks, conversations = [tasks[i] for i in failed], [conversations[i] for i in failed]
        out += [row_of(task, messages) for task, messages in zip(tasks, conversations)]
        again = [i for i in range(len(tasks)) if rng.random() < SECOND_ATTEMPTS]
        again = [i for i in again if prompt_length(tokenizer, conversations[i]) < network.c.context]  # feedback can be long
        tasks, conversations = [tasks[i] for i in again], [conversations[i] for i in again]
        failed = failures_of(tasks, conversations, attempts(network, tokenizer, tasks, conversations, temperature), rng)
        out += [row_of(tasks[i], conversations[i]) for i in failed]
    network.train()
    with open(path + ".part", "w") as f:
        f.writelines(json.dumps(row) + "\n" for row in out)
    os.replace(path + ".part", path)
    return len(out)


def load(path):
    return [json.loads(line) for line in open(path)]


def in_words_of(task, text):
    """An answer with this task's name, and its comments where the program is made of primitives."""
    code = program_in(text)
    program = parse(code)
    return with_program_start(text.replace(code, written(program, task)) if program else text, task.function)


def sample(row, rng):
    """The same mistakes in another task with the same program (other name, tests and words), then the truth; None where a mistake
    passes, or never ends."""
    task = redrawn([tuple(step) for step in row["program"]], row["vague"], rng)
    if not task:
        return None
    conversation = [("user", task_message(task), 0)]
    texts = [in_words_of(task, text) for text in row["attempts"]]
    if len(failures_of([task] * len(texts), [conversation] * len(texts), texts, rng)) < len(texts):
        return None
    if texts[0].startswith(fenced("")[:-4]):
        conversation[1] = attempt(program_in(texts[0]), task)
    return conversation + [learnt(explain_text(program_in(texts[-1]), task) + "\n" + fenced(task.code))]
