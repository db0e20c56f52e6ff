"""Judges samples by the rules of the reference harnesses, without anything of Fixpoint's: a second opinion.

    reference_evaluator.py BENCHMARK_FILE SAMPLES OUT [--workers N] [--timeout SECONDS]

HumanEval and LDB: exec(prompt + completion + test + check(entry_point)). MBPP: exec(code + setup + tests). HumanEval+ and
MBPP+: each output against the canonical solution's, with EvalPlus's tolerances and special oracles. A program runs in a
forked process of its own and is killed from outside. OUT gets a JSON line {"task_id", "sample", "passed", "result"} a sample.
Use it on programs that are not out to cheat: like the reference harnesses, it runs tests in the program's own process.
"""

import argparse
import copy
import gzip
import json
import math
import multiprocessing
import os
import pickle
import resource
import signal
import sys

SET_EQUAL = {"similar_elements", "find_char_long", "common_in_nested_lists", "extract_singly", "larg_nnum", "intersection_array", "find_dissimilar", "Diff"}
NOT_NONE = {"check_str", "text_match_three", "text_starta_endb"}
TUPLES = {2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809}
TUPLES_INSIDE = {63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780}


def rows(path):
    data = open(path, "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    text = data.decode("utf-8")
    if text.lstrip().startswith("["):
        return json.loads(text)
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def deep_tuple(v):
    return tuple(deep_tuple(x) for x in v) if isinstance(v, list) else v


def typed(number, inp):
    """An MBPP+ input with the Python types that JSON cannot hold."""
    if number in TUPLES:
        return [tuple(a) for a in inp]
    if number in TUPLES_INSIDE:
        return [[tuple(x) for x in a] for a in inp]
    if number in (75, 413, 444, 753):
        return [[tuple(x) for x in inp[0]], inp[1]]
    if number in (106, 750):
        return [inp[0], tuple(inp[1])]
    if number == 115:
        return [[set(x) if isinstance(x, list) and x else {} for x in inp[0]]]
    if number == 124:
        return [float(inp[0]), complex(inp[1])]
    if number in (250, 307, 405, 446, 617, 720, 763, 808):
        return [tuple(inp[0])] + inp[1:]
    if number in (259, 401, 445):
        return [tuple(tuple(x) for x in a) for a in inp]
    if number == 278:
        return [tuple(tuple(x) if isinstance(x, list) else x for x in inp[0])]
    if number == 722:
        return [{k: tuple(v) for k, v in inp[0].items()}] + inp[1:]
    if number == 252:
        return [complex(inp[0])]
    if number in (580, 615, 791):
        return deep_tuple(inp)
    return inp


def quiet():
    sys.stdout = sys.stderr = open(os.devnull, "w")
    sys.stdin = open(os.devnull)


def forked(work, timeout):
    """What work() returns, from a process of its own; None when it died or took too long."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(read)
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
            resource.setrlimit(resource.RLIMIT_CPU, (int(timeout) + 1, int(timeout) + 2))
            quiet()
            out = pickle.dumps(work())
            with os.fdopen(write, "wb") as pipe:
                pipe.write(out)
            code = 0
        except BaseException:
            pass
        finally:
            os._exit(code)
    os.close(write)
    import select
    import time

    end = time.monotonic() + timeout * 4
    parts = []
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([read], [], [], left)[0]:
            break
        part = os.read(read, 1 << 16)
        if not part:
            break
        parts.append(part)
    os.close(read)
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    _, _, usage = os.wait4(pid, 0)
    # What was written whole counts: the process may not have come to its end when it was killed.
    try:
        return pickle.loads(b"".join(parts))
    except (EOFError, pickle.UnpicklingError):
        return "timeout" if usage.ru_utime + usage.ru_stime >= timeout - 0.2 or time.monotonic() >= end else None


def run_text(program):
    try:
        exec(compile(program, "program", "exec"), {"__name__": "program"})
        return "passed"
    except BaseException as error:
        return "failed: " + type(error).__name__


class Late(Exception):
    pass


def late(_signal, _frame):
    raise Late()


def call(function, inp, seconds):
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return function(*inp)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def floats(v):
    return isinstance(v, float) or (isinstance(v, (list, tuple)) and bool(v) and all(isinstance(x, float) for x in v))


def accepted(mbpp, entry, inp, out, expected, atol):
    import numpy

    exact = out == expected
    if mbpp:
        if entry == "are_equivalent":
            exact = True
        elif entry == "sum_div":
            exact = exact or out == 0
        elif entry == "surface_Area":
            edge, height = inp
            exact = exact or abs(out - round(edge**2 + 4 * (edge * math.sqrt((edge / 2) ** 2 + height**2)) / 2)) <= atol
        elif entry == "digit_distance_nums":
            a, b = str(inp[0]), str(inp[1])
            width = max(len(a), len(b))
            exact = exact or out == sum(abs(int(x) - int(y)) for x, y in zip(a.zfill(width), b.zfill(width)))
        elif entry in SET_EQUAL:
            exact = set(out) == set(expected)
        elif entry in NOT_NONE:
            exact = out == expected if isinstance(out, bool) else expected == (out is not None)
    elif entry == "find_zero":
        return abs(sum(c * math.pow(out, i) for i, c in enumerate(inp[0]))) <= atol
    if not exact and atol != 0:
        if type(out) is not type(expected) or (isinstance(expected, (list, tuple)) and len(out) != len(expected)):
            return False
        return bool(numpy.allclose(out, expected, rtol=1e-07, atol=atol))
    return bool(exact)


def judge_inputs(mbpp, entry, program, inputs, expected, atol):
    try:
        space = {"__name__": "program"}
        exec(compile(program, "program", "exec"), space)
        function = space[entry]
        for inp, want in zip(inputs, expected):
            original = copy.deepcopy(inp) if entry in ("find_zero", "surface_Area", "digit_distance_nums") else inp
            out = call(function, inp, 6.0)
            if atol == 0 and floats(want):
                atol = 1e-6
            if not accepted(mbpp, entry, original, out, want, atol):
                return "failed: wrong"
        return "passed"
    except BaseException as error:
        return "failed: " + type(error).__name__


def expected_outputs(entry, program, inputs):
    space = {"__name__": "program"}
    exec(compile(program, "program", "exec"), space)
    out = [space[entry](*copy.deepcopy(inp)) for inp in inputs]
    return [v is not None for v in out] if entry in NOT_NONE else out


class Benchmark:
    def __init__(self, path):
        self.tasks = {}
        self.expected = {}
        for row in rows(path):
            first = str(row["task_id"])
            self.tasks[first.rsplit("/", 1)[-1]] = row

    def judge(self, task_id, sample, timeout):
        row = self.tasks[str(task_id).rsplit("/", 1)[-1]]
        if "base_input" in row:
            return self.judge_plus(row, sample["solution"] if "solution" in sample else row["prompt"] + sample["completion"])
        if "test_list" in row:
            program = sample.get("solution", sample.get("completion"))
            setup = "\n".join(row.get("test_imports", [])) + "\n" + (row.get("test_setup_code") or "")
            return forked(lambda: run_text(program + "\n" + setup + "\n" + "\n".join(row["test_list"])), timeout)
        program = sample["solution"] if "solution" in sample else row["prompt"] + sample["completion"]
        return forked(lambda: run_text(program + "\n" + row["test"] + "\n" + "check(%s)" % row["entry_point"]), timeout)

    def judge_plus(self, row, program):
        mbpp = row["task_id"].startswith("Mbpp/")
        number = int(row["task_id"].split("/")[1])
        entry = row["entry_point"]
        for field in ("base_input", "plus_input"):
            inputs = [typed(number, inp) if mbpp else inp for inp in row[field]]
            key = (row["task_id"], field)
            if key not in self.expected:
                expected = forked(lambda: expected_outputs(entry, row["prompt"] + row["canonical_solution"], inputs), 120)
                if not isinstance(expected, list):
                    return "not judged: the canonical solution did not answer"
                self.expected[key] = expected
            result = forked(lambda: judge_inputs(mbpp, entry, program, inputs, self.expected[key], row["atol"]), 60)
            if result != "passed":
                return result
        return "passed"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("benchmark")
    parser.add_argument("samples")
    parser.add_argument("out")
    parser.add_argument("--timeout", type=float, default=10)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    benchmark = Benchmark(options.benchmark)
    samples = rows(options.samples)
    numbers = {}
    work = []
    for sample in samples:
        number = numbers.get(sample["task_id"], 0)
        numbers[sample["task_id"]] = number + 1
        work.append((sample["task_id"], number, sample))
    # By task, so that each one's expected outputs are computed in one process.
    turns = {task: turn for turn, task in enumerate(numbers)}
    chunks = [[item for item in work if turns[item[0]] % options.workers == i] for i in range(options.workers)]

    def judged(chunk):
        return [(task, number, benchmark.judge(task, sample, options.timeout) or "failed: died") for task, number, sample in chunk]

    if options.workers == 1:
        results = judged(work)
    else:
        with multiprocessing.get_context("fork").Pool(options.workers) as pool:
            results = sum(pool.map(_Judged(benchmark, options.timeout), chunks), [])
    results.sort(key=lambda r: (str(r[0]), r[1]))
    with open(options.out, "w") as out:
        for task, number, result in results:
            out.write(json.dumps({"task_id": task, "sample": number, "passed": result == "passed", "result": result}) + "\n")
    print(json.dumps({"programs": len(results), "passed": sum(r[2] == "passed" for r in results)}))


class _Judged:
    def __init__(self, benchmark, timeout):
        self.benchmark, self.timeout = benchmark, timeout

    def __call__(self, chunk):
        return [(task, number, self.benchmark.judge(task, sample, self.timeout) or "failed: died") for task, number, sample in chunk]


if __name__ == "__main__":
    sys.set_int_max_str_digits(0)
    main()
