"""Writes mutated reference solutions as samples: a wrong operator, an off-by-one, a changed comparison, a dropped statement.

    mutate.py BENCHMARK_FILE OUT [--per-task N] [--seed S]

Each mutant differs from its reference in one place and parses. Samples have `task_id` and `solution`.
"""

import argparse
import ast
import copy
import json
import random

from reference_evaluator import rows

BINARY = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
          ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift}
COMPARE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
           ast.Is: ast.IsNot, ast.IsNot: ast.Is}


def changes(tree):
    """Every single change, as (index of the node in a walk, what to do with it)."""
    for index, node in enumerate(ast.walk(tree)):
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in BINARY:
            yield index, lambda n: setattr(n, "op", BINARY[type(n.op)]())
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
            yield index, lambda n: n.ops.__setitem__(0, COMPARE[type(n.ops[0])]())
        elif isinstance(node, ast.BoolOp):
            yield index, lambda n: setattr(n, "op", ast.Or() if isinstance(n.op, ast.And) else ast.And())
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            yield index, lambda n: setattr(n, "value", n.value + 1)
            yield index, lambda n: setattr(n, "value", n.value - 1)
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield index, lambda n: setattr(n, "value", not n.value)
        elif isinstance(node, ast.Return) and node.value is not None:
            yield index, lambda n: setattr(n, "value", ast.Constant(None))
        elif isinstance(node, ast.If):
            yield index, lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))


def mutants(source):
    tree = ast.parse(source)
    original = ast.unparse(tree)
    for index, change in changes(tree):
        copy_ = copy.deepcopy(tree)
        change(list(ast.walk(copy_))[index])
        try:
            text = ast.unparse(ast.fix_missing_locations(copy_))
            ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        if text != original:
            yield text + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("benchmark")
    parser.add_argument("out")
    parser.add_argument("--per-task", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pick = random.Random(options.seed)
    count = 0
    with open(options.out, "w") as out:
        for row in rows(options.benchmark):
            source = row["code"] if "code" in row else row["canonical_solution"] if str(row["task_id"]).startswith("MBPP/") else row["prompt"] + row["canonical_solution"]
            found = sorted(set(mutants(source)))
            for text in pick.sample(found, min(options.per_task, len(found))):
                out.write(json.dumps({"task_id": row["task_id"], "solution": text}) + "\n")
                count += 1
    print(count)


if __name__ == "__main__":
    main()
