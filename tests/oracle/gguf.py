"""Reads a GGUF file into numpy: metadata as a dict, every tensor dequantised to float64.

Written from the format's description, apart from the engine's reader, so that the two check each other.
"""
import struct

import numpy as np

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def unpack(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0]

    def string(self):
        n = self.unpack("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            item, count = self.unpack("I"), self.unpack("Q")
            return [self.value(item) for _ in range(count)]
        return self.unpack(SCALARS[kind])


def blocks(raw, size):
    return np.frombuffer(raw, np.uint8).reshape(-1, size)


def half(columns):
    return np.ascontiguousarray(columns).view("<f2").astype(np.float64)


def nibbles(packed):
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float64)


def fifth_bits(columns):
    """32 bits of a little-endian u32 as columns 0..31, each worth 16."""
    word = np.ascontiguousarray(columns).view("<u4")
    return ((word >> np.arange(32, dtype=np.uint32)) & 1).astype(np.float64) * 16


def q8_0(raw):
    b = blocks(raw, 34)
    return half(b[:, :2]) * b[:, 2:].view(np.int8)


def q4_0(raw):
    b = blocks(raw, 18)
    return half(b[:, :2]) * (nibbles(b[:, 2:]) - 8)


def q4_1(raw):
    b = blocks(raw, 20)
    return half(b[:, :2]) * nibbles(b[:, 4:]) + half(b[:, 2:4])


def q5_0(raw):
    b = blocks(raw, 22)
    return half(b[:, :2]) * (nibbles(b[:, 6:]) + fifth_bits(b[:, 2:6]) - 16)


def q5_1(raw):
    b = blocks(raw, 24)
    return half(b[:, :2]) * (nibbles(b[:, 8:]) + fifth_bits(b[:, 4:8])) + half(b[:, 2:4])


def k_scales(s):
    """Twelve bytes -> eight 6-bit scales and eight 6-bit minima."""
    low, mid, high = s[:, 0:4], s[:, 4:8], s[:, 8:12]
    scales = np.concatenate([low & 63, (high & 15) | ((low >> 6) << 4)], axis=1)
    minima = np.concatenate([mid & 63, (high >> 4) | ((mid >> 6) << 4)], axis=1)
    return scales.astype(np.float64), minima.astype(np.float64)


def k_codes(packed):
    """128 bytes -> [n, 8, 32]: each run of 32 bytes holds two sub-blocks, low and high nibbles."""
    runs = packed.reshape(-1, 4, 32)
    return np.stack([runs & 15, runs >> 4], axis=2).reshape(-1, 8, 32).astype(np.float64)


def k_values(d, dmin, scales, minima, codes):
    return ((d * scales)[:, :, None] * codes - (dmin * minima)[:, :, None]).reshape(codes.shape[0], 256)


def q4_k(raw):
    b = blocks(raw, 144)
    return k_values(half(b[:, :2]), half(b[:, 2:4]), *k_scales(b[:, 4:16]), k_codes(b[:, 16:]))


def q5_k(raw):
    b = blocks(raw, 176)
    high = (b[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[None, :, None]) & 1
    return k_values(half(b[:, :2]), half(b[:, 2:4]), *k_scales(b[:, 4:16]), k_codes(b[:, 48:]) + 16.0 * high)


def q6_k(raw):
    b = blocks(raw, 210)
    low, high = b[:, :128].reshape(-1, 2, 64), b[:, 128:192].reshape(-1, 2, 32)
    parts = [(low[:, :, :32] & 15) | ((high & 3) << 4), (low[:, :, 32:] & 15) | (((high >> 2) & 3) << 4),
             (low[:, :, :32] >> 4) | (((high >> 4) & 3) << 4), (low[:, :, 32:] >> 4) | ((high >> 6) << 4)]
    codes = np.concatenate(parts, axis=2).astype(np.float64).reshape(-1, 16, 16) - 32
    scales = b[:, 192:208].view(np.int8).astype(np.float64)
    return (half(b[:, 208:]) * scales)[:, :, None] * codes


def bf16(raw):
    return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32).astype(np.float64)


# type id -> (values in a block, bytes of a block, decoder)
TYPES = {
    0: (1, 4, lambda raw: np.frombuffer(raw, "<f4").astype(np.float64)),
    1: (1, 2, lambda raw: np.frombuffer(raw, "<f2").astype(np.float64)),
    2: (32, 18, q4_0), 3: (32, 20, q4_1), 6: (32, 22, q5_0), 7: (32, 24, q5_1), 8: (32, 34, q8_0),
    12: (256, 144, q4_k), 13: (256, 176, q5_k), 14: (256, 210, q6_k), 30: (1, 2, bf16),
}


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    r = Reader(data)
    assert data[:4] == b"GGUF", "not a GGUF file"
    r.at = 4
    version, num_tensors, num_pairs = r.unpack("I"), r.unpack("Q"), r.unpack("Q")
    assert version in (2, 3), version
    meta = {}
    for _ in range(num_pairs):
        key = r.string()
        meta[key] = r.value(r.unpack("I"))
    infos = []
    for _ in range(num_tensors):
        name = r.string()
        dims = [r.unpack("Q") for _ in range(r.unpack("I"))]
        infos.append((name, dims, r.unpack("I"), r.unpack("Q")))
    align = meta.get("general.alignment", 32)
    start = -(-r.at // align) * align
    tensors = {}
    for name, dims, kind, offset in infos:
        per, size, decode = TYPES[kind]
        count = int(np.prod(dims, dtype=np.int64))
        raw = data[start + offset:start + offset + count // per * size]
        tensors[name] = decode(raw).reshape(dims[::-1])
    return meta, tensors
