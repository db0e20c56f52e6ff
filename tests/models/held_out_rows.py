"""The first tasks of models/held_out.jsonl.gz, made anew from their seed. Exit code 1 where one is another."""
import gzip
import itertools
import json
import os
import sys

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models")
sys.path.insert(0, os.path.join(MODELS, "recipe"))
from held_out import rows  # noqa: E402

TASKS = 40

with gzip.open(os.path.join(MODELS, "held_out.jsonl.gz"), "rt") as file:
    stored = file.readlines()
made = [json.dumps(row, separators=(",", ":")) + "\n" for row in itertools.islice(rows(len(stored), 4711), TASKS)]
for here, there in zip(made, stored):
    if here != there:
        sys.exit(f"made {here}stored {there}")
