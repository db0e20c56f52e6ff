"""Trains the model. The learning rate follows the clock, so that a run of --minutes always ends annealed.

    python3 train.py --tokenizer tokenizer.json --minutes 120 --out model.pt

A checkpoint is written every 200 steps, and after 8 minutes at the latest, with everything that is needed to go on (--resume).
"""
import argparse
import multiprocessing
import os
import random
import re
import time
from dataclasses import asdict, dataclass

import torch

import own_mistakes
from bugs import plain_sample, repair_sample
from family import FUNCTION_NAMES, make_task
from network import Config, Network
from practice import Practice, measure
from tokenizer import Tokenizer


# ---------------------------------------------------------------- data
@dataclass(frozen=True)
class Stage:
    """A part of the run. Phrase -> primitive is learnt first, so the first parts are short and plain."""
    until: float        # share of the run
    steps: tuple        # weights of programs of 1, 2, ... steps; empty: the family's own
    vague: float        # share of the steps that could be vague and are
    repairs: float      # share of the samples that are repairs
    own: float          # share of the samples that repair the model's own mistakes, once there are any


# First drafts take most of a run from nothing: until plain descriptions are nearly solved, what fails is not what only the tests can
# settle. A run that goes on from such weights (--init) first practises what its probes find wrong, in short plain programs, then
# vague ones, so short that the test can be read.
FROM_NOTHING = (Stage(0.1, (65, 35), 0.1, 0.1, 0.0), Stage(0.5, (20, 40, 26, 14), 0.2, 0.2, 0.0),
                Stage(0.8, (30, 38, 20, 12), 0.65, 0.45, 0.1), Stage(2.0, (), 0.5, 0.4, 0.25))
GOING_ON = (Stage(0.52, (20, 40, 26, 14), 0.2, 0.2, 0.0), Stage(0.8, (30, 38, 20, 12), 0.75, 0.5, 0.2),
            Stage(2.0, (), 0.5, 0.4, 0.25))
STOPPING_STEPS = 60
# The weight of what the model is told (tests, feedback, a name that is given to it) beside that of what it writes. Most of it follows
# from what stands before: to foresee a trace is to know what a line of code does, and to copy.
TOLD_WEIGHT = 0.25
# Shares of the run at which the model's mistakes are collected anew, and at which it is asked for each phrase.
COLLECT_AT = (0.65,)
PROBE_FROM_NOTHING, PROBE_GOING_ON = (0.2, 0.4, 0.6), (0.0, 0.12, 0.28, 0.45, 0.7)


def sample(rng, stage, practice):
    steps = 1 + rng.choices(range(len(stage.steps)), stage.steps)[0] if stage.steps else None
    task = make_task(rng, steps=steps, held=False, vague_share=stage.vague, practice=practice)
    shown = 1 if rng.random() < 0.75 else rng.randint(2, 4)  # people show more than one test
    return (repair_sample(task, rng, shown=shown) if rng.random() < stage.repairs else None) or plain_sample(task, shown)


def unknown_name(tokenizer, text):
    """Positions of the program's name among the tokens of an answer, where it is none of the few that the model knows: the
    server writes it (the file's fixpoint.program_start_given), so that learning to guess it would be wasted."""
    match = re.search(r"```python\ndef (\w+)", text)
    if not match or match.group(1) in FUNCTION_NAMES:
        return range(0)
    return range(len(tokenizer.plain(text[:match.start(1) - 1])), len(tokenizer.plain(text[:match.end(1)])))


def common_length(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def encode(tokenizer, messages, context):
    """Token ids, and the weight of each in the loss."""
    ids, weights = [], []
    for role, text, learn in messages:
        head, body, tail = tokenizer.turn(role, text)
        count = len(body) if learn == len(text) else common_length(tokenizer.plain(text[:learn]), body)
        mine = [1.0] * count + [0.0] * (len(body) - count)
        if role == "user":
            told = len(tokenizer.plain(text[:max(0, text.find("\nassert "))]))  # a description is nothing to foresee
            mine = [0.0] * told + [TOLD_WEIGHT] * (len(body) - told)
        elif learn:
            for i in unknown_name(tokenizer, text):
                mine[i] = TOLD_WEIGHT
        ids, weights = ids + head + body + tail, weights + [0.0] * len(head) + mine + [0.0] * len(tail)
    return (ids, weights) if len(ids) <= context else None


class Newest:
    """What `load` reads from a file that another process writes now and then; None before."""
    def __init__(self, path, load):
        self.path, self.load, self.read, self.value = path, load, None, None

    def get(self):
        if os.path.exists(self.path) and os.path.getmtime(self.path) != self.read:
            self.read = os.path.getmtime(self.path)
            self.value = self.load(self.path)
        return self.value


def produce(seed, queue, tokenizer_path, context, stages, stage_number, mistakes_path, practice_path):
    rng, tokenizer = random.Random(seed), Tokenizer.load(tokenizer_path)
    mistakes, practices = Newest(mistakes_path, own_mistakes.load), Newest(practice_path, Practice.load)
    while True:
        stage, own, practice = stages[stage_number.value], mistakes.get(), practices.get()
        samples = []
        while len(samples) < 128:
            messages = own_mistakes.sample(rng.choice(own), rng) if own and rng.random() < stage.own else sample(rng, stage, practice)
            encoded = messages and encode(tokenizer, messages, context)
            if encoded:
                samples.append(encoded)
        queue.put(samples)


def batch_of(pool, tokens, rng):
    """Samples of about equal length, taken out of the pool, that fill about `tokens` positions."""
    pool.sort(key=lambda s: len(s[0]))
    i = rng.randrange(len(pool))
    size = max(1, tokens // len(pool[i][0]))
    i = max(0, min(i, len(pool) - size))
    batch = pool[i:i + size]
    del pool[i:i + size]
    longest = -(-(max(len(ids) for ids, _ in batch) - 1) // 16) * 16
    x, y = torch.zeros(len(batch), longest, dtype=torch.long), torch.zeros(len(batch), longest, dtype=torch.long)
    w = torch.zeros(len(batch), longest)
    for j, (ids, weights) in enumerate(batch):
        n = len(ids) - 1
        x[j, :n], y[j, :n], w[j, :n] = torch.tensor(ids[:-1]), torch.tensor(ids[1:]), torch.tensor(weights[1:])
    return x, y, w


# ---------------------------------------------------------------- optimiser
def orthogonal(g, steps=5):
    """Newton-Schulz iteration towards the nearest orthogonal matrix (Jordan et al., Muon, 2024)."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.bfloat16()
    x = x / (x.norm() + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.t() if tall else x
    for _ in range(steps):
        q = x @ x.t()
        x = a * x + (b * q + c * q @ q) @ x
    return (x.t() if tall else x).to(g.dtype)


class Muon(torch.optim.Optimizer):
    def __init__(self, parameters, lr, momentum=0.95, decay=0.1):
        super().__init__(parameters, dict(lr=lr, momentum=momentum, decay=decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if "m" not in state:
                    state["m"] = torch.zeros_like(p)
                state["m"].lerp_(p.grad, 1 - group["momentum"])
                update = orthogonal(p.grad.lerp(state["m"], group["momentum"]))
                scale = max(1, p.shape[0] / p.shape[1]) ** 0.5
                p.mul_(1 - group["lr"] * group["decay"]).add_(update, alpha=-group["lr"] * scale)


def optimisers(network, lr):
    matrices = [p for n, p in network.named_parameters() if p.dim() == 2 and "embedding" not in n]
    rest = [p for n, p in network.named_parameters() if p.dim() != 2 or "embedding" in n]
    both = [Muon(matrices, lr), torch.optim.AdamW(rest, lr=0.15 * lr, betas=(0.9, 0.95), weight_decay=0.0)]
    for optimiser in both:
        for group in optimiser.param_groups:
            group["base"] = group["lr"]
    return both


def learning_rate_scale(done, step, warmup):
    """Warm-up, flat for 15 % of the run, then linear to (nearly) nothing: what is won is won on the way down."""
    return min(1.0, (step + 1) / warmup) * (1.0 if done < 0.15 else max(0.005, 1 - (done - 0.15) / 0.85))


def stage_at(stages, done):
    return next(i for i, stage in enumerate(stages) if done < stage.until)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tokenizer", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--minutes", type=float, default=120)
    p.add_argument("--resume", help="checkpoint to go on from, with its clock")
    p.add_argument("--init", help="checkpoint whose weights to start a new run from")
    p.add_argument("--stop", help="where this file appears, the rate falls to nothing within 60 steps, and the run ends")
    p.add_argument("--d", type=int, default=256)
    p.add_argument("--layers", type=int, default=6)
    p.add_argument("--lr", type=float, default=0.02)
    p.add_argument("--batch", type=int, default=6144, help="tokens a step")
    p.add_argument("--warmup", type=int, default=100, help="steps")
    p.add_argument("--mistakes", type=int, default=3000, help="tasks on which the model's own mistakes are collected each time")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--workers", type=int, default=1)
    p.add_argument("--device", default="cpu")
    return p.parse_args()


def main():
    a = arguments()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    rng = random.Random(a.seed)
    vocab = len(Tokenizer.load(a.tokenizer).tokens)
    config = Config(vocab=vocab, d=a.d, heads=a.d // 64, kv=max(1, a.d // 128), ffn=a.d * 3, layers=a.layers)
    before = torch.load(a.resume or a.init, map_location="cpu") if a.resume or a.init else None
    network = Network(Config(**before["config"]) if a.resume else config)
    if before:  # weights from before there were biases have none
        network.load_state_dict(before["network"], strict=bool(a.resume))
    network.to(a.device)
    opts = optimisers(network, a.lr)
    elapsed, step, tokens = 0.0, 0, 0
    if a.resume:
        elapsed, step, tokens = before["elapsed"], before["step"], before["tokens"]
        for optimiser, state in zip(opts, before["optimisers"]):
            optimiser.load_state_dict(state)

    stage, mistakes_path, practice_path = multiprocessing.Value("i", 0), a.out + ".mistakes", a.out + ".practice"
    stages, probe_at = (GOING_ON, PROBE_GOING_ON) if a.init else (FROM_NOTHING, PROBE_FROM_NOTHING)
    stage.value = stage_at(stages, elapsed / 60 / a.minutes)
    queue = multiprocessing.Queue(4)
    workers = [multiprocessing.Process(target=produce, daemon=True, args=(a.seed * 1000 + step + i, queue, a.tokenizer,
                                                                          network.c.context, stages, stage, mistakes_path, practice_path))
               for i in range(a.workers)]
    for worker in workers:
        worker.start()

    def save():
        torch.save(dict(network=network.state_dict(), config=asdict(network.c), optimisers=[o.state_dict() for o in opts],
                        elapsed=time.time() - start, step=step, tokens=tokens), a.out + ".part")
        os.replace(a.out + ".part", a.out)

    print(f"{sum(p.numel() for p in network.parameters()) / 1e6:.2f} M parameters", network.c, vars(a), flush=True)
    start, pool, losses = time.time() - elapsed, [], []
    saved, stopping = time.time(), None
    collect_at, probe_at = ([share for share in shares if share * a.minutes * 60 >= elapsed] for shares in (COLLECT_AT, probe_at))
    while (done := (time.time() - start) / 60 / a.minutes) <= 1:
        stage.value = stage_at(stages, done)
        if probe_at and done >= probe_at[0]:
            probe_at.pop(0)
            practice = measure(network, Tokenizer.load(a.tokenizer), a.seed * 1000 + step)
            practice.save(practice_path)
            print(f"step {step} probe: {practice}, {(time.time() - start) / 60 - done * a.minutes:.1f} minutes", flush=True)
        if a.mistakes and collect_at and done >= collect_at[0]:
            collect_at.pop(0)
            save()
            tokenizer = Tokenizer.load(a.tokenizer)
            count = own_mistakes.collect(network, tokenizer, a.mistakes, a.seed * 1000 + step, mistakes_path)
            print(f"step {step} {count} conversations with own mistakes, {(time.time() - start) / 60 - done * a.minutes:.1f} minutes",
                  flush=True)
        scale = learning_rate_scale(done, step, a.warmup)
        if a.stop and stopping is None and os.path.exists(a.stop):
            stopping = step
        if stopping is not None:
            scale *= 1 - (step - stopping) / STOPPING_STEPS
            if step == stopping + STOPPING_STEPS:
                break
        for optimiser in opts:
            for group in optimiser.param_groups:
                group["lr"] = group["base"] * scale
        while len(pool) < 1024:
            pool += queue.get()
        x, y, w = (t.to(a.device) for t in batch_of(pool, a.batch, rng))
        for optimiser in opts:
            optimiser.zero_grad(set_to_none=True)
        with torch.autocast(a.device.split(":")[0], dtype=torch.bfloat16):
            loss, written = network(x, y, w)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        for optimiser in opts:
            optimiser.step()
        step, tokens = step + 1, tokens + x.numel()
        losses.append(written.item())
        if step % 20 == 0:
            print(f"step {step} minute {done * a.minutes:.1f} loss {sum(losses[-20:]) / len(losses[-20:]):.4f} scale {scale:.3f} "
                  f"tokens {tokens / 1e6:.2f} M, {tokens / (time.time() - start):.0f}/s", flush=True)
        if step % 200 == 0 or time.time() - saved > 480:
            save()
            saved = time.time()
    save()
    for worker in workers:
        worker.terminate()


if __name__ == "__main__":
    main()
