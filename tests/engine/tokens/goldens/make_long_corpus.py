#!/usr/bin/env python3
"""Writes long.jsonl: texts of about a kilobyte, from this project's own sources and documentation as they are, with CRLF, with tabs,
and mixed with emoji, CJK, other scripts, numbers and long runs of white space. The same from the same sources and seed.

    make_long_corpus.py SEED > long.jsonl
"""
import json
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[4]
SUFFIXES = (".cpp", ".h", ".cu", ".py", ".js", ".mjs", ".md", ".cmake", ".json", ".yaml", "CMakeLists.txt")
PIECES = [
    "😀", "👩‍💻", "🏳️‍🌈", "👍🏽", "🇫🇷", "e\u0301", "ﬁ", "Ⅷ", "½", "±", "→", "…", "“”", "‘s", "n\u2019t", "ß", "İ", "ŉ",
    "函数返回列表中最大的数", "プログラムを修正する", "정렬된 배열", "исправь ошибку", "διόρθωσε", "שלום עולם", "مرحبا 123", "नमस्ते", "ไทย",
    "0x7FFFFFFF", "3.14159e-10", "1234567890123", "①②③", "٠١٢٣", "１２３", "<|im_start|>", "<s>", "</s>", "[INST]", "\u00a0", "\u3000", "\u200b",
    "\ufeff", "\u2028", "\r", "\r\n\r\n", "\n\n\n", "\t\t", " " * 7, " " * 64, "\n    \n", "\t \t", "'re", "'LL", "don't", "__init__", "->", ">>=", "!==",
]


def sources():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return [name for name in sorted(names) if name.endswith(SUFFIXES) and "goldens" not in name and "fuzz" not in name]


def cut(text, random):
    size = random.randint(300, 1500)
    start = random.randrange(max(1, len(text) - size))
    return text[start:start + size]


def mixed(text, random):
    parts = []
    at = 0
    while at < len(text):
        step = random.randint(5, 60)
        parts.append(text[at:at + step])
        parts.append("".join(random.choice(PIECES) for _ in range(random.randint(1, 4))))
        at += step
    return "".join(parts)


def main():
    choose = random.Random(int(sys.argv[1]))
    names = sources()
    for number in range(240):
        text = cut((ROOT / choose.choice(names)).read_text(encoding="utf-8"), choose)
        kind = number % 8
        if kind == 4:
            text = text.replace("\n", "\r\n")
        elif kind == 5:
            text = text.replace("  ", "\t")
        elif kind >= 6:
            text = mixed(text[:600], choose)
        print(json.dumps(text))


main()
