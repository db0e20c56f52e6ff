#!/usr/bin/env python3
"""Writes goldens.inc: random blocks of each quantised type and the values they stand for, decoded here from the formats'
description in double precision, independently of the C++ code. Needs Python alone."""
import random
import struct

rng = random.Random(20240607)


def half(b):
    return struct.unpack("<e", bytes(b[:2]))[0]


def signed(byte):
    return byte - 256 if byte > 127 else byte


def nibbles(q):
    return [x % 16 for x in q] + [x // 16 for x in q]


def fifth(b):
    word = int.from_bytes(bytes(b), "little")
    return [word // 2**i % 2 * 16 for i in range(32)]


def plain(b, at, middle=0, offset=0.0, high=None):
    high = fifth(high) if high else [0] * 32
    return [half(b) * (n + h - middle) + offset for n, h in zip(nibbles(b[at:]), high)]


def k_scales(s):
    """Twelve bytes hold eight 6-bit scales and eight 6-bit minima."""
    scales = [s[j] % 64 for j in range(4)] + [s[8 + j] % 16 + s[j] // 64 * 16 for j in range(4)]
    minima = [s[4 + j] % 64 for j in range(4)] + [s[8 + j] // 16 + s[4 + j] // 64 * 16 for j in range(4)]
    return scales, minima


def k_block(b, qs, high):
    d, dmin = half(b), half(b[2:])
    scales, minima = k_scales(b[4:16])
    out = []
    for pair in range(4):
        run = qs[32 * pair:32 * pair + 32]
        for part, codes in enumerate(([x % 16 for x in run], [x // 16 for x in run])):
            sub = 2 * pair + part
            extra = [x // 2**sub % 2 * 16 for x in high] if high else [0] * 32
            out += [d * scales[sub] * (c + e) - dmin * minima[sub] for c, e in zip(codes, extra)]
    return out


def q6_block(b):
    codes = []
    for h in range(2):
        ql, qh = b[64 * h:64 * h + 64], b[128 + 32 * h:160 + 32 * h]
        low = [[x % 16 for x in ql[:32]], [x % 16 for x in ql[32:]], [x // 16 for x in ql[:32]], [x // 16 for x in ql[32:]]]
        for i in range(4):
            codes += [l + x // 4**i % 4 * 16 - 32 for l, x in zip(low[i], qh)]
    return [half(b[208:]) * signed(b[192 + i // 16]) * c for i, c in enumerate(codes)]


# name: bytes of a block, where its halves stand, decoder
DECODERS = {
    "q8_0": (34, [0], lambda b: [half(b) * signed(x) for x in b[2:]]),
    "q4_0": (18, [0], lambda b: plain(b, 2, middle=8)),
    "q4_1": (20, [0, 2], lambda b: plain(b, 4, offset=half(b[2:]))),
    "q5_0": (22, [0], lambda b: plain(b, 6, middle=16, high=b[2:6])),
    "q5_1": (24, [0, 2], lambda b: plain(b, 8, offset=half(b[2:]), high=b[4:8])),
    "q4_k": (144, [0, 2], lambda b: k_block(b, b[16:], None)),
    "q5_k": (176, [0, 2], lambda b: k_block(b, b[48:], b[16:48])),
    "q6_k": (210, [208], q6_block),
}


def literal(value):
    text = "%.9g" % value
    return text + ("F" if "." in text or "e" in text else ".0F")


with open("goldens.inc", "w") as out:
    out.write("// Written by make_goldens.py.\n")
    for name, (size, halves, decode) in DECODERS.items():
        block = [rng.randrange(256) for _ in range(size)]
        for at in halves:  # scales of an ordinary size, not any bit pattern
            block[at:at + 2] = struct.pack("<e", rng.uniform(-0.1, 0.1))
        values = ", ".join(literal(v) for v in decode(block))
        out.write("{DType::%s, {%s},\n {%s}},\n" % (name, ", ".join(map(str, block)), values))
