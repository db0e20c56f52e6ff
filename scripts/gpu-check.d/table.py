"""Prints one table from the logs that scripts/gpu-check left in a folder. Exit code 1 when a step failed."""

import json
import pathlib
import sys

PARAMETERS_BYTES = {"0.5b": 2 * 494.0e6, "7b": 2 * (7.616e9 - 152064 * 3584)}  # what a decode step reads, BF16
PARAMETERS = {"0.5b": 358e6, "7b": 6.53e9}  # in the matrices of the layers


def objects(path):
    """The JSON objects of a log, one a line."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
    return found


def print_kernels(folder):
    rows = objects(folder / "kernels.log")
    ceilings = next((row for row in rows if "device" in row), None)
    if ceilings is None:
        return None
    print(f"{ceilings['device']}: copies {ceilings['copy_gb_per_s']:.0f} GB/s, BF16 products {ceilings['bf16_tflops']:.0f} TFLOP/s\n")
    print(f"{'kernel':<42}{'us':>11}{'GB/s':>9}{'TFLOP/s':>9}{'of copy':>9}{'of rate':>9}")
    for row in rows:
        if "us" in row:
            print(
                f"{row['name']:<42}{row['us']:>11.1f}{row['gb_per_s']:>9.0f}{row['tflops']:>9.1f}"
                f"{100 * row['of_bandwidth']:>8.0f}%{100 * row['of_matrix_rate']:>8.0f}%"
            )
    print()
    return ceilings


def print_engine(folder, ceilings):
    print(f"{'engine':<42}{'tokens/s':>11}{'of limit':>10}")
    for shape in PARAMETERS:
        for products in ("exact", "fastest"):
            for result in objects(folder / f"engine-{shape}-{products}.log"):
                for row in result.get("rows", []):
                    share = ""
                    if row["name"].startswith("prefill"):
                        limit = ceilings["bf16_tflops"] * 1e12 / (2 * PARAMETERS[shape])
                        share = f"{100 * row['tokens_per_s'] / limit:>9.0f}%"
                    elif " x" not in row["name"]:
                        limit = ceilings["copy_gb_per_s"] * 1e9 / PARAMETERS_BYTES[shape]
                        share = f"{100 * row['tokens_per_s'] / limit:>9.0f}%"
                    print(f"{shape + ' BF16, ' + products + ': ' + row['name']:<42}{row['tokens_per_s']:>11.0f}{share}")
    print("(limits: one read of the weights at copy bandwidth a token; products of the layers at the matrix rate)\n")


def outcome(status):
    """In words, and whether it is a failure."""
    if status == "absent":
        return "not here", False
    if status == "no-time":
        return "no time left", True
    if status in ("124", "137"):
        return "timed out", True
    return ("passed", False) if status == "0" else (f"failed ({status})", True)


def main():
    folder = pathlib.Path(sys.argv[1])
    ceilings = print_kernels(folder)
    if ceilings is not None:
        print_engine(folder, ceilings)
    failed = False
    print(f"{'step':<28}{'result':>14}{'seconds':>9}")
    for line in (folder / "steps.txt").read_text().splitlines():
        name, status, seconds = line.split()
        result, is_failure = outcome(status)
        failed = failed or is_failure
        print(f"{name:<28}{result:>14}{seconds:>9}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
