"""Wrong programs of the task family with the two messages that the recipe trains on, as JSON lines:
write_conversations.py COUNT SEED [held]; held: of the programs that training never saw"""
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/recipe"))
from bugs import make_bug  # noqa: E402
from family import make_task  # noqa: E402
from prompts import feedback_message, fenced, task_message  # noqa: E402

count, rng, held = int(sys.argv[1]), random.Random(int(sys.argv[2])), sys.argv[3:] == ["held"]
while count > 0:
    task, shown = make_task(rng, held=held), rng.randint(1, 4)
    bug = make_bug(task, rng)
    if not bug:
        continue
    code, kind, failures, why = bug
    print(json.dumps({
        "task": {"statement": task.description, "language": "python", "entry_point": task.function, "shown_tests": shown,
                 "tests": [f"assert {task.function}({argument}) == {value}" for argument, value in task.tests]},
        "wrong": fenced(code), "right": why + "\n" + fenced(task.code),
        "first": task_message(task, shown), "second": feedback_message(kind, failures)}))
    count -= 1
