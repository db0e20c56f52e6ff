"""Prints a held-out task of the embedded model's family as a task for `fixpoint solve`: held_out_task.py FILE.jsonl.gz NUMBER"""
import gzip
import itertools
import json
import sys

with gzip.open(sys.argv[1], "rt") as lines:
    row = json.loads(next(itertools.islice(lines, int(sys.argv[2]), None)))
tests = [f"assert {row['function']}({argument}) == {value}" for argument, value in row["tests"]]
hidden = [f"assert {row['function']}({argument}) == {value}" for argument, value in row["hidden_tests"]]
print(json.dumps({"statement": row["description"], "language": "python", "entry_point": row["function"], "shown_tests": 1,
                  "tests": tests, "hidden_tests": hidden}))
