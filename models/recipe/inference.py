"""Batched generation with a KV cache (prompts padded on the left)."""
import torch

from network import Config, Network


def load(path):
    checkpoint = torch.load(path, map_location="cpu")
    network = Network(Config(**checkpoint["config"]))
    network.load_state_dict(checkpoint["network"])
    return network.eval()


@torch.no_grad()
def generate_batch(network, prompts, end, temperature, max_tokens):
    c, batch, longest = network.c, len(prompts), max(map(len, prompts))
    ids, pad = torch.zeros(batch, longest, dtype=torch.long), torch.tensor([longest - len(p) for p in prompts])
    for j, p in enumerate(prompts):
        ids[j, longest - len(p):] = torch.tensor(p)
    room = min(c.context, longest + max_tokens)
    cache = [dict(n=0, k=torch.zeros(batch, c.kv, room, c.head_dim), v=torch.zeros(batch, c.kv, room, c.head_dim))
             for _ in range(c.layers)]
    padded = torch.arange(room)[None] < pad[:, None]
    mask = torch.zeros(longest, longest).masked_fill_(torch.ones(longest, longest, dtype=torch.bool).triu(1), -1e30)
    mask = mask[None].repeat(batch, 1, 1).masked_fill_(padded[:, None, :longest], -1e30)
    positions = (torch.arange(longest)[None] - pad[:, None]).clamp(min=0)
    hidden = network.hidden(ids, positions, mask[:, None, None], cache)[:, -1]
    live, out = torch.arange(batch), [[] for _ in prompts]
    for step in range(max_tokens):
        logits = hidden @ network.embedding.weight.t()
        if temperature == 0:
            chosen = logits.argmax(-1)
        else:
            chosen = torch.multinomial(torch.softmax(logits / temperature, -1), 1)[:, 0]
        going = chosen != end
        for row, token in zip(live[going].tolist(), chosen[going].tolist()):
            out[row].append(token)
        length = longest + step + 1
        if not going.any() or length >= room:
            break
        if not going.all():  # finished rows leave the batch
            live, chosen, pad, padded = live[going], chosen[going], pad[going], padded[going]
            for layer in cache:
                layer["k"], layer["v"] = layer["k"][going], layer["v"][going]
        mask = torch.zeros(len(live), 1, 1, 1, length).masked_fill_(padded[:, None, None, None, :length], -1e30)
        hidden = network.hidden(chosen[:, None], (length - 1 - pad)[:, None], mask, cache)[:, -1]
    return out


def generate(network, prompts, end, temperature=0.0, max_tokens=220, batch=64):
    """Token ids without the end token, in the order of `prompts`; longest prompts share batches."""
    order, out = sorted(range(len(prompts)), key=lambda i: len(prompts[i])), [None] * len(prompts)
    for at in range(0, len(order), batch):
        rows = order[at:at + batch]
        for i, ids in zip(rows, generate_batch(network, [prompts[i] for i in rows], end, temperature, max_tokens)):
            out[i] = ids
    return out
