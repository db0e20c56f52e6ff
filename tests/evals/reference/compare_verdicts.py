"""Fixpoint's results.jsonl against the reference evaluator's verdicts: prints every disagreement, and what that one could not judge; exit
status 1 if there is one.

    compare_verdicts.py RESULTS REFERENCE
"""

import json
import sys


def number(task):
    return str(task).rsplit("/", 1)[-1]


def main():
    ours = {}
    for line in open(sys.argv[1]).read().split("\n")[1:]:
        if line:
            record = json.loads(line)
            ours[number(record["task"]), record["sample"]] = record
    disagreements = 0
    agreed = passed = not_judged = 0
    for line in open(sys.argv[2]).read().split("\n"):
        if not line:
            continue
        theirs = json.loads(line)
        record = ours.pop((number(theirs["task_id"]), theirs["sample"]))
        if theirs["result"].startswith("not judged"):
            not_judged += 1
            print(theirs["task_id"], theirs["sample"], "reference:", theirs["result"])
            continue
        if record["passed"] == theirs["passed"]:
            agreed += 1
            passed += theirs["passed"]
            continue
        disagreements += 1
        judgement = record["judgement"]
        print(theirs["task_id"], theirs["sample"], "reference:", theirs["result"], "| ours:", judgement["outcome"], judgement.get("message", "")[:200])
    print(json.dumps({"agree": agreed, "passed_by_both": passed, "disagree": disagreements, "not_judged": not_judged, "missing": len(ours)}))
    return 1 if disagreements or not_judged or ours else 0


if __name__ == "__main__":
    sys.exit(main())
