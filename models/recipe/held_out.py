"""Writes the held-out split as a benchmark for `fixpoint eval family`.

    python3 held_out.py held_out.jsonl.gz --tasks 1000 --seed 4711

One task a line. Every one holds a pair of primitives that no training program has, and no program is there twice. `tests`
are shown to the loop (the first one in the prompt); `hidden_tests` are further inputs, which only score. The same
arguments give the same bytes: each task has a random stream of its own, and draws that take too long are told by CPU time
and memory, far above what the others take.
"""
import argparse
import contextlib
import gzip
import json
import random
import resource
import signal

import family
from running import Timeout, compile_function, outcome

STEPS = ((2, 0.5), (3, 0.35), (4, 0.15))
HIDDEN_TESTS = 6
DRAWS = 60
CPU_SECONDS, MEMORY_BYTES = 0.5, 1 << 29


def _ring(*_):
    raise Timeout()


@contextlib.contextmanager
def cpu_alarm(_):
    signal.signal(signal.SIGPROF, _ring)
    signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


family.alarm = cpu_alarm


def hidden_tests(task, rng):
    """Values of the reference on inputs that no shown test has."""
    reference = compile_function(task.code, task.function)
    kind = family.PRIMITIVES[task.program[0][0]].takes
    seen, found = {argument for argument, _ in task.tests}, []
    for _ in range(DRAWS):
        argument = family.random_input(kind, task.program, rng)
        if len(found) == HIDDEN_TESTS or repr(argument) in seen:
            continue
        seen.add(repr(argument))
        try:
            with cpu_alarm(None):
                value = outcome(reference, argument)
        except Timeout:
            continue
        if not isinstance(value, Exception) and family.small(value):
            found.append((repr(argument), repr(value)))
    return found


def row_of(number, task, rng):
    return {"task_id": f"family/{number}", "description": task.description, "function": task.function, "tests": task.tests,
            "hidden_tests": hidden_tests(task, rng), "steps": len(task.program), "vague": task.vague,
            "primitives": [name if k is None else f"{name} {k}" for name, k in task.program], "reference": family.code_of(task.program, task.function) + "\n"}


def rows(count, seed):
    steps = [n for n, share in STEPS for _ in range(round(count * share))]
    random.Random(seed).shuffle(steps)  # so that the first tasks are a sample of all
    seen = set()
    for number, n in enumerate(steps):
        for attempt in range(1000):
            rng = random.Random(f"{seed}/{number}/{attempt}")
            task = family.make_task(rng, steps=n, held=True)
            if str(task.program) not in seen:
                break
        seen.add(str(task.program))
        yield row_of(number, task, rng)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--tasks", type=int, default=1000)
    p.add_argument("--seed", type=int, default=4711)
    a = p.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows(a.tasks, a.seed))
    data = gzip.compress(text.encode(), mtime=0) if a.out.endswith(".gz") else text.encode()
    with open(a.out, "wb") as file:
        file.write(data)


if __name__ == "__main__":
    main()
