"""Byte-level BPE with Qwen2's pre-tokenizer: trainer, encoder, and the Hugging Face file.   python3 tokenizer.py OUT [VOCAB]"""
import collections
import functools
import json
import random
import re
import sys

LETTER = r"[^\W\d_]"
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# The same pattern for Python's re, exact for the ASCII that this family is written in.
PATTERN = re.compile(rf"(?i:'s|'t|'re|'ve|'m|'ll|'d)|(?:[^\r\n\w]|_)?{LETTER}+|\d| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def byte_letters():
    """GPT-2's printable letter for each byte."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table = {b: chr(b) for b in keep}
    for b in range(256):
        table.setdefault(b, chr(256 + len(table) - len(keep)))
    return table


LETTERS = byte_letters()
BYTES = {letter: b for b, letter in LETTERS.items()}


def learn(texts, vocab):
    counts = collections.Counter()
    for text in texts:
        counts.update(PATTERN.findall(text))
    words = [([LETTERS[b] for b in word.encode()], n) for word, n in counts.items()]
    tokens, merges = [LETTERS[b] for b in range(256)], []
    while len(tokens) + len(SPECIAL) < vocab:
        pairs = collections.Counter()
        for word, n in words:
            for pair in zip(word, word[1:]):
                pairs[pair] += n
        best, n = max(pairs.items(), key=lambda x: (x[1], x[0]), default=(None, 0))
        if n < 2:
            break
        merges.append(best)
        tokens.append(best[0] + best[1])
        for word, _ in words:
            i = 0
            while i < len(word) - 1:
                if (word[i], word[i + 1]) == best:
                    word[i:i + 2] = [best[0] + best[1]]
                i += 1
    return tokens, merges


class Tokenizer:
    def __init__(self, tokens, merges):
        self.tokens = list(tokens) + SPECIAL
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        self.merges = [tuple(m) for m in merges]
        self.rank = {m: i for i, m in enumerate(self.merges)}
        self.end_of_text, self.im_start, self.im_end = (self.ids[s] for s in SPECIAL)
        self.word = functools.lru_cache(200_000)(self._word)

    def _word(self, word):
        parts = [LETTERS[b] for b in word.encode()]
        while len(parts) > 1:
            rank, i = min((self.rank.get(pair, 1 << 30), i) for i, pair in enumerate(zip(parts, parts[1:])))
            if rank == 1 << 30:
                break
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        return tuple(self.ids[p] for p in parts)

    def plain(self, text):
        return [i for word in PATTERN.findall(text) for i in self.word(word)]

    def turn(self, role, text):
        """(head, body with its end token, newline)"""
        return [self.im_start] + self.plain(role + "\n"), self.plain(text) + [self.im_end], self.plain("\n")

    def prompt(self, messages):
        ids = []
        for role, text in messages:
            head, body, tail = self.turn(role, text)
            ids += head + body + tail
        return ids + [self.im_start] + self.plain("assistant\n")

    def decode(self, ids):
        out = bytearray()
        for i in ids:
            token = self.tokens[i]
            out += token.encode() if token in SPECIAL else bytes(BYTES[c] for c in token)
        return out.decode("utf-8", "replace")

    def save(self, path):
        added = [dict(id=self.ids[s], content=s, single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
                 for s in SPECIAL]
        byte_level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=False, use_regex=False)
        split = dict(type="Split", pattern=dict(Regex=QWEN2), behavior="Isolated", invert=False)
        model = dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix="", end_of_word_suffix="",
                     fuse_unk=False, byte_fallback=False, ignore_merges=False,
                     vocab={t: i for i, t in enumerate(self.tokens) if t not in SPECIAL},
                     merges=[" ".join(m) for m in self.merges])
        with open(path, "w") as file:
            json.dump(dict(version="1.0", truncation=None, padding=None, added_tokens=added, normalizer=None,
                           pre_tokenizer=dict(type="Sequence", pretokenizers=[split, byte_level]), post_processor=None,
                           decoder=byte_level, model=model), file, ensure_ascii=False)

    @staticmethod
    def load(path):
        with open(path) as file:
            model = json.load(file)["model"]
        return Tokenizer(sorted(model["vocab"], key=model["vocab"].get), [m.split(" ") for m in model["merges"]])


def main():
    from bugs import plain_sample, repair_sample
    from family import make_task
    rng, texts = random.Random(1), []
    for i in range(6000):
        task = make_task(rng, held=False)
        sample = (repair_sample(task, rng) if i % 2 else None) or plain_sample(task)
        texts.append("".join(f"{role}\n{text}" for role, text, _ in sample))
    tokenizer = Tokenizer(*learn(texts, int(sys.argv[2]) if len(sys.argv) > 2 else 1280))
    tokenizer.save(sys.argv[1])
    tokenizer = Tokenizer.load(sys.argv[1])
    assert all(tokenizer.decode(tokenizer.plain(x)) == x for x in texts[:300])
    count = sum(len(tokenizer.plain(x)) for x in texts)
    print(f"{len(tokenizer.tokens)} tokens, {sum(map(len, texts)) / count:.2f} bytes a token, {count / len(texts):.0f} tokens a sample")


if __name__ == "__main__":
    main()
