#!/usr/bin/env python3
"""Writes or checks goldens.json from the model files of a directory.

  goldens.py write DIR goldens.json     compute
  goldens.py check DIR goldens.json     compute again and compare (exit 1 on a difference)
  goldens.py greedy FILE N ID...        greedy continuation of a prompt, ids on one line
"""
import json
import pathlib
import sys

import numpy as np

import gguf
import transformer

PROMPT_LENGTH = 24
STRIDE = 7         # every 7th logit of a row is kept
POSITIONS = (5, 23)
GREEDY_STEPS = 12
LEAST_GAP = 2e-3   # below it, rounding may choose the other token


def fnv1a(data):
    """Over words of 8 bytes; the files are padded to 32."""
    h = 0xCBF29CE484222325
    for word in np.frombuffer(data, "<u8").tolist():
        h = (h ^ word) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return "%016x" % h


def prompt_for(vocab):
    return [(i * i * 31 + i * 17 + 5) % (vocab - 8) for i in range(PROMPT_LENGTH)]


def greedy(model, prompt, steps, least_gap=0.0):
    tokens = list(prompt)
    for _ in range(steps):
        row = model.logits(tokens)[-1]
        first, second = np.sort(row)[-1], np.sort(row)[-2]
        if first - second < least_gap:
            break
        tokens.append(int(np.argmax(row)))
    return tokens[len(prompt):]


def golden_of(path):
    meta, tensors = gguf.read(path)
    model = transformer.Model(meta, tensors)
    vocab = len(meta["tokenizer.ggml.tokens"])
    prompt = prompt_for(vocab)
    logits = model.logits(prompt)
    return {
        "name": path.stem,
        "file_fnv1a": fnv1a(path.read_bytes()),
        "prompt": prompt,
        "stride": STRIDE,
        "rows": [{"position": p, "rms": float("%.7g" % np.sqrt(np.mean(logits[p] ** 2))),
                  "logits": [float("%.7g" % v) for v in logits[p][::STRIDE]]} for p in POSITIONS],
        "greedy": greedy(model, prompt, GREEDY_STEPS, LEAST_GAP),
    }


def same(a, b):
    if isinstance(a, float) and isinstance(b, (int, float)):
        return abs(a - b) <= 1e-6 * max(1.0, abs(a))
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    return a == b


def main(argv):
    if argv[1:2] == ["greedy"]:
        model = transformer.Model(*gguf.read(argv[2]))
        print(*greedy(model, [int(t) for t in argv[4:]], int(argv[3])))
        return 0
    if len(argv) != 4 or argv[1] not in ("write", "check"):
        print(__doc__, file=sys.stderr)
        return 2
    files = sorted(pathlib.Path(argv[2]).glob("*.gguf"))
    goldens = [golden_of(path) for path in files]
    if argv[1] == "write":
        with open(argv[3], "w") as f:
            f.write("[\n" + ",\n".join(json.dumps(g, separators=(",", ":")) for g in goldens) + "\n]\n")
        return 0
    with open(argv[3]) as f:
        committed = json.load(f)
    bad = [g["name"] for g, c in zip(goldens, committed) if not same(g, c)]
    if bad or len(goldens) != len(committed):
        print("goldens differ:", ", ".join(bad) or "another number of models", file=sys.stderr)
        return 1
    print("%d models agree with %s" % (len(goldens), argv[3]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
