"""Is the engine's greedy output the trainer's own, token for token? On prompts of held-out tasks, with the F32 file:

    python3 same_tokens.py FIXPOINT model.pt tokenizer.json fixpoint-small-F32.gguf [COUNT]
"""
import json
import subprocess
import sys

from evaluate import held_out_tasks
from inference import generate, load
from prompts import task_message
from tokenizer import Tokenizer

MOST_TOKENS = 220

fixpoint, checkpoint, tokenizer_file, model = sys.argv[1:5]
count = int(sys.argv[5]) if len(sys.argv) > 5 else 100
tokenizer, network = Tokenizer.load(tokenizer_file), load(checkpoint)
prompts, texts = [], [task_message(task) for task in held_out_tasks(count, 17)[:count]]
for text in texts:
    prompts.append(tokenizer.prompt([("user", text)]))
# One prompt a batch: padding does not change the result, but it changes the order of sums.
expected = [generate(network, [prompt], tokenizer.im_end, 0.0, MOST_TOKENS)[0] for prompt in prompts]
same_prompts = same = 0
for text, prompt, ids in zip(texts, prompts, expected):
    run = subprocess.run([fixpoint, "generate", "-m", model, "--chat", "-p", text, "-n", str(MOST_TOKENS), "--temp", "0", "--json",
                          "--kv-type", "F32", "--kv-memory", "64M", "--threads", "1"], capture_output=True, text=True, check=True)
    answer = json.loads(run.stdout.strip().splitlines()[-1])
    tokens = answer["tokens"]
    if tokens and tokens[-1] == tokenizer.im_end:
        tokens = tokens[:-1]
    same_prompts += answer["prompt_tokens"] == prompt
    same += tokens == ids
    if tokens != ids:
        print(f"differs: {text!r}\n  trainer {tokenizer.decode(ids)!r}\n  engine  {tokenizer.decode(tokens)!r}")
print(f"{same_prompts} of {len(texts)} prompts and {same} of {len(texts)} answers are equal, token for token")
