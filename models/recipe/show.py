"""Prints samples: python3 show.py [SEED]"""
import random
import sys
import time

from bugs import parse, plain_sample, repair_sample
from family import make_task
from prompts import chat
from running import run_tests

rng = random.Random(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
for _ in range(5):
    task = make_task(rng, held=False)
    assert parse(task.code) == task.program, (task.code, parse(task.code))
    assert run_tests(task.code, task.function, task.tests)[0]
    sample = repair_sample(task, rng) or plain_sample(task)
    print(chat([(role, text) for role, text, _ in sample]) + "-----")
start, repairs = time.time(), 0
for _ in range(300):
    repairs += repair_sample(make_task(rng, held=False), rng) is not None
print(f"{(time.time() - start) / 300 * 1e3:.1f} ms a sample, {repairs} of 300 with a bug")
