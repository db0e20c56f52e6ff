"""Conversations in which the model's own wrong programs are explained and put right.

The model answers training tasks at a temperature; what fails is run for its real feedback, and the true explanation
follows from parsing the program. Half of the conversations go on to a second attempt of the model before the truth.
"""
import json
import os
import random

import torch

from bugs import ONLY_VERDICT, explain_text
from family import make_task
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
        if passed or kind in ("timeout", "error"):
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


def learnt_answer(conversation, task):
    wrong = program_in(conversation[-2][1])
    return conversation + [("assistant", explain_text(wrong, task) + "\n" + fenced(task.code), 1)]


@torch.no_grad()
def collect(network, tokenizer, tasks_count, seed, path):
    """Writes the conversations to `path` as JSON lines; returns their number."""
    rng, out = random.Random(seed), []
    network.eval()
    for temperature in TEMPERATURES:
        tasks = [make_task(rng, held=False, vague_share=0.6) for _ in range(tasks_count // len(TEMPERATURES))]
        conversations = [[("user", task_message(task), 0)] for task in tasks]
        failed = failures_of(tasks, conversations, attempts(network, tokenizer, tasks, conversations, temperature), rng)
        tasks, conversations = [tasks[i] for i in failed], [conversations[i] for i in failed]
        out += [learnt_answer(messages, task) for messages, task in zip(conversations, tasks)]
        again = [i for i in range(len(tasks)) if rng.random() < SECOND_ATTEMPTS]
        again = [i for i in again if prompt_length(tokenizer, conversations[i]) < network.c.context]  # feedback can be long
        tasks, conversations = [tasks[i] for i in again], [list(conversations[i]) for i in again]
        failed = failures_of(tasks, conversations, attempts(network, tokenizer, tasks, conversations, temperature), rng)
        out += [learnt_answer(conversations[i], tasks[i]) for i in failed]
    network.train()
    with open(path + ".part", "w") as f:
        f.writelines(json.dumps(messages) + "\n" for messages in out)
    os.replace(path + ".part", path)
    return len(out)


def load(path):
    return [json.loads(line) for line in open(path)]
