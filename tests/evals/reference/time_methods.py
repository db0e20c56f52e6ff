"""Programs a second by the methods of the official HumanEval evaluator and of EvalPlus, run by their own code.

    time_methods.py human-eval CHECKOUT BENCHMARK SAMPLES [--workers N] [--limit N]
    time_methods.py evalplus   CHECKOUT BENCHMARK SAMPLES [--workers N] [--limit N]

CHECKOUT is a clone of openai/human-eval (with its exec line on) or of evalplus/evalplus. SAMPLES have `task_id` and
`solution`. HumanEval's evaluator is driven as its evaluation.py drives it: a pool of threads, a manager and a process for
each program, 3 s. EvalPlus as its evaluate.py: a pool of processes, a process for base and one for plus inputs, the
canonical solutions' outputs and times computed before (and not counted here). Prints one JSON object.
"""

import argparse
import concurrent.futures
import copy
import json
import sys
import time

from reference_evaluator import rows, typed


def human_eval_jobs(options, tasks, samples):
    sys.path.insert(0, options.checkout)
    from human_eval.execution import check_correctness

    pool = concurrent.futures.ThreadPoolExecutor(options.workers)
    for sample in samples:
        row = dict(tasks[sample["task_id"]], prompt="")
        yield pool.submit(lambda r, s: check_correctness(r, s["solution"], 3.0)["passed"], row, sample)


def plus_outputs(row, inputs, mbpp):
    space = {}
    exec(row["prompt"] + row["canonical_solution"], space)
    outputs, times = [], []
    for inp in inputs:
        inp = copy.deepcopy(inp)
        start = time.monotonic()
        outputs.append(space[row["entry_point"]](*inp))
        times.append(time.monotonic() - start)
    return outputs, times


def plus_check(dataset, solution, parts, row):
    from evalplus.eval import PASS, untrusted_check

    for inputs, outputs, times in parts:
        if inputs and untrusted_check(dataset, solution, inputs, row["entry_point"], outputs, row["atol"], times, fast_check=True)[0] != PASS:
            return False
    return True


def evalplus_jobs(options, tasks, samples):
    sys.path.insert(0, options.checkout)
    prepared = {}
    for name in {s["task_id"] for s in samples}:
        row = tasks[name]
        mbpp = name.startswith("Mbpp/")
        prepared[name] = []
        for field in ("base_input", "plus_input"):
            inputs = [typed(int(name.split("/")[1]), inp) if mbpp else inp for inp in row[field]]
            prepared[name].append((inputs, *plus_outputs(row, inputs, mbpp)))
    options.started = time.monotonic()
    pool = concurrent.futures.ProcessPoolExecutor(options.workers)
    for sample in samples:
        name = sample["task_id"]
        yield pool.submit(plus_check, "mbpp" if name.startswith("Mbpp/") else "humaneval", sample["solution"], prepared[name],
                          {key: tasks[name][key] for key in ("entry_point", "atol")})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("method", choices=("human-eval", "evalplus"))
    parser.add_argument("checkout")
    parser.add_argument("benchmark")
    parser.add_argument("samples")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    tasks = {row["task_id"]: row for row in rows(options.benchmark)}
    samples = rows(options.samples)[: options.limit]
    options.started = time.monotonic()
    jobs = human_eval_jobs if options.method == "human-eval" else evalplus_jobs
    passed = sum(job.result() for job in list(jobs(options, tasks, samples)))
    seconds = time.monotonic() - options.started
    print(json.dumps({"method": options.method, "programs": len(samples), "passed": passed, "seconds": round(seconds, 2),
                      "programs_per_second": round(len(samples) / seconds, 2)}))


if __name__ == "__main__":
    sys.set_int_max_str_digits(0)
    main()
