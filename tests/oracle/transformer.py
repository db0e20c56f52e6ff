"""The forward pass of llama, qwen2 and qwen3 in float64, from the papers' formulas; plain and slow.

Shapes: T tokens, D hidden, H heads, K key/value heads, d head size.
"""
import math

import numpy as np


class Model:
    def __init__(self, meta, tensors):
        self.w = tensors
        self.arch = meta["general.architecture"]
        get = lambda field, default=None: meta.get(self.arch + "." + field, default)
        self.layers = get("block_count")
        self.heads = get("attention.head_count")
        self.kv_heads = get("attention.head_count_kv", self.heads)
        self.head_dim = get("attention.key_length", get("embedding_length") // self.heads)
        self.eps = get("attention.layer_norm_rms_epsilon")
        self.rotary = get("rope.dimension_count", self.head_dim)
        self.inv_freq, self.magnitude = self.rotation(
            get("rope.freq_base", 10000.0), get("rope.scaling.type", "none"), get("rope.scaling.factor", 1.0),
            get("rope.scaling.original_context_length", get("context_length")))

    def rotation(self, theta, kind, factor, original):
        pair = np.arange(self.rotary // 2, dtype=np.float64)
        freq = theta ** (-2 * pair / self.rotary)
        magnitude = 1.0
        if kind == "linear":
            freq = freq / factor
        elif kind == "yarn":
            # A pair turns original * freq / 2 pi times over the original context; fast pairs stay, slow ones are stretched.
            index_at = lambda turns: self.rotary * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))
            low, high = max(math.floor(index_at(32)), 0), min(math.ceil(index_at(1)), self.rotary - 1)
            ramp = np.clip((pair - low) / max(high - low, 0.001), 0, 1)
            freq = freq * (1 - ramp) + freq / factor * ramp
            magnitude = 1 + 0.1 * math.log(factor)
        else:
            assert kind == "none", kind
        if "rope_freqs.weight" in self.w:
            freq = freq / self.w["rope_freqs.weight"]
        return freq, magnitude

    def rotate(self, x):
        """x [T, heads, d]; positions are 0..T-1."""
        angle = np.arange(x.shape[0])[:, None] * self.inv_freq[None, :]
        cos, sin = (self.magnitude * f(angle)[:, None, :] for f in (np.cos, np.sin))
        turned, rest = x[..., :self.rotary], x[..., self.rotary:]
        if self.arch == "llama":  # neighbours are a pair
            a, b = turned[..., 0::2], turned[..., 1::2]
            turned = np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(turned.shape)
        else:  # the halves are paired
            a, b = np.split(turned, 2, axis=-1)
            turned = np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)
        return np.concatenate([turned, rest], axis=-1)

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps) * self.w[name + ".weight"]

    def linear(self, x, name):
        return x @ self.w[name + ".weight"].T + self.w.get(name + ".bias", 0.0)

    def attention(self, x, layer):
        t = x.shape[0]
        q = self.linear(x, layer + "attn_q").reshape(t, self.heads, self.head_dim)
        k = self.linear(x, layer + "attn_k").reshape(t, self.kv_heads, self.head_dim)
        v = self.linear(x, layer + "attn_v").reshape(t, self.kv_heads, self.head_dim)
        if layer + "attn_q_norm.weight" in self.w:
            q, k = self.norm(q, layer + "attn_q_norm"), self.norm(k, layer + "attn_k_norm")
        q, k = self.rotate(q), self.rotate(k)
        share = self.heads // self.kv_heads
        k, v = np.repeat(k, share, axis=1), np.repeat(v, share, axis=1)
        scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(self.head_dim)
        scores[:, np.triu(np.ones((t, t), bool), 1)] = -np.inf
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", weights, v).reshape(t, self.heads * self.head_dim)
        return self.linear(mixed, layer + "attn_output")

    def feed_forward(self, x, layer):
        gate = self.linear(x, layer + "ffn_gate")
        return self.linear(gate / (1 + np.exp(-gate)) * self.linear(x, layer + "ffn_up"), layer + "ffn_down")

    def logits(self, tokens):
        """[T, V] for a sequence of token ids."""
        x = self.w["token_embd.weight"][np.asarray(tokens)]
        for i in range(self.layers):
            layer = "blk.%d." % i
            x = x + self.attention(self.norm(x, layer + "attn_norm"), layer)
            x = x + self.feed_forward(self.norm(x, layer + "ffn_norm"), layer)
        x = self.norm(x, "output_norm")
        return x @ self.w.get("output.weight", self.w["token_embd.weight"]).T
