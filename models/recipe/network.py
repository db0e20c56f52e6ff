"""A Qwen2-shaped decoder (RMSNorm, half-split RoPE, SwiGLU, GQA, tied embeddings), PyTorch 1.13 or later."""
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    vocab: int = 1280
    d: int = 256
    layers: int = 6
    heads: int = 4
    kv: int = 2
    head_dim: int = 64
    ffn: int = 768
    context: int = 2048
    theta: float = 10000.0
    eps: float = 1e-6
    qkv_bias: bool = True  # without them the exporter writes zeros


PREVIOUS_TOKEN_PAIRS, PREVIOUS_TOKEN_SIZE = 8, 5.5


class RMSNorm(nn.Module):
    def __init__(self, d, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d)), eps

    def forward(self, x):
        r = torch.rsqrt((x.float() * x.float()).mean(-1, keepdim=True) + self.eps)
        return x * r.to(x.dtype) * self.weight.to(x.dtype)


def rotate(x):
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], -1)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.attn_norm, self.ffn_norm = RMSNorm(c.d, c.eps), RMSNorm(c.d, c.eps)
        self.qkv = nn.Linear(c.d, (c.heads + 2 * c.kv) * c.head_dim, bias=c.qkv_bias)
        self.attn_out = nn.Linear(c.heads * c.head_dim, c.d, bias=False)
        self.gate_up = nn.Linear(c.d, 2 * c.ffn, bias=False)
        self.ffn_down = nn.Linear(c.ffn, c.d, bias=False)

    def forward(self, x, cos, sin, mask, cache=None, wanted=None):
        c, (batch, tokens, _) = self.c, x.shape
        q, k, v = self.qkv(self.attn_norm(x)).split([c.heads * c.head_dim, c.kv * c.head_dim, c.kv * c.head_dim], -1)
        q, k, v = (t.view(batch, tokens, -1, c.head_dim).transpose(1, 2) for t in (q, k, v))
        q, k = q * cos + rotate(q) * sin, k * cos + rotate(k) * sin
        if cache is not None:
            n = cache["n"]
            cache["k"][:, :, n:n + tokens], cache["v"][:, :, n:n + tokens] = k, v
            cache["n"] = n = n + tokens
            k, v = cache["k"][:, :, :n], cache["v"][:, :, :n]
        group = c.heads // c.kv  # query heads share KV heads without a copy
        q = q.reshape(batch, c.kv, group * tokens, c.head_dim) * c.head_dim ** -0.5
        scores = (q @ k.transpose(-1, -2)).view(batch, c.kv, group, tokens, -1)
        if mask is not None:
            scores = scores + mask
        weights = F.softmax(scores.float(), -1).to(v.dtype).view(batch, c.kv, group * tokens, -1)
        y = (weights @ v).view(batch, c.kv, group, tokens, c.head_dim).permute(0, 3, 1, 2, 4)
        x = x + self.attn_out(y.reshape(batch, tokens, c.heads * c.head_dim))
        if wanted is not None:
            x = x.reshape(-1, c.d)[wanted]
        gate, up = self.gate_up(self.ffn_norm(x)).chunk(2, -1)
        return x + self.ffn_down(F.silu(gate) * up)


class Network(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embedding = nn.Embedding(c.vocab, c.d)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = RMSNorm(c.d, c.eps)
        inverse = c.theta ** -(torch.arange(0, c.head_dim, 2).float() / c.head_dim)
        angle = torch.outer(torch.arange(c.context).float(), inverse)
        angle = torch.cat([angle, angle], -1)
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        nn.init.normal_(self.embedding.weight, std=0.02)
        for name, p in self.named_parameters():
            if p.dim() == 2 and "embedding" not in name:
                std = 0.5 * p.shape[1] ** -0.5
                if name.endswith(("attn_out.weight", "ffn_down.weight")):
                    std /= math.sqrt(2 * c.layers)
                nn.init.normal_(p, std=std)
            elif name.endswith("bias"):
                nn.init.zeros_(p)
        if c.qkv_bias:
            self.look_back(inverse)

    @torch.no_grad()
    def look_back(self, inverse):
        """Makes the first head of the first layer attend to the token before: its biases are turned against each other by one position
        in the fastest of RoPE's pairs. To copy is to look for what stood after the same token; a model of this size comes upon
        the first half of that by itself very late."""
        c, n = self.c, PREVIOUS_TOKEN_PAIRS
        q, k = self.blocks[0].qkv.bias[:c.head_dim], self.blocks[0].qkv.bias[c.heads * c.head_dim:][:c.head_dim]
        k[:n] = PREVIOUS_TOKEN_SIZE
        q[:n] = PREVIOUS_TOKEN_SIZE * inverse[:n].cos()
        q[c.head_dim // 2:][:n] = -PREVIOUS_TOKEN_SIZE * inverse[:n].sin()

    def hidden(self, ids, positions=None, mask=None, cache=None, wanted=None):
        """`wanted`: the positions, of all in a row, that are needed; the last block's second half is computed only there."""
        x, tokens = self.embedding(ids), ids.shape[1]
        if positions is None:
            cos, sin = self.cos[:tokens].to(x.dtype), self.sin[:tokens].to(x.dtype)
        else:
            cos, sin = self.cos[positions].to(x.dtype).unsqueeze(1), self.sin[positions].to(x.dtype).unsqueeze(1)
        if mask is None and tokens > 1:
            mask = torch.full((tokens, tokens), float("-inf"), device=ids.device, dtype=x.dtype).triu(1)
        for i, block in enumerate(self.blocks):
            x = block(x, cos, sin, mask, None if cache is None else cache[i], wanted if i == len(self.blocks) - 1 else None)
        return self.norm(x)

    def forward(self, ids, targets, weights):
        """Weighted mean cross entropy, and the plain mean where the weight is 1; logits are made only where it is not 0."""
        wanted = weights.reshape(-1).nonzero(as_tuple=True)[0]
        h, w = self.hidden(ids, wanted=wanted), weights.reshape(-1)[wanted]
        losses = F.cross_entropy((h @ self.embedding.weight.t().to(h.dtype)).float(), targets.reshape(-1)[wanted], reduction="none")
        return (losses * w).sum() / w.sum(), losses.detach()[w == 1].mean()
