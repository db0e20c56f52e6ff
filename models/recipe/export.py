"""Checkpoint -> GGUF and Hugging Face folder, architecture qwen2 (zero q/k/v biases where it was trained without).

    python3 export.py model.pt tokenizer.json OUT_DIR NAME
"""
import json
import os
import struct
import sys

import numpy as np
import torch

from network import Config
from tokenizer import SPECIAL, Tokenizer

TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
            "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def named_tensors(state, c):
    """(Hugging Face name, GGUF name, float32 array)"""
    get = lambda name: state[name].float().numpy()
    q, kv = c.heads * c.head_dim, c.kv * c.head_dim
    out = [("model.embed_tokens.weight", "token_embd.weight", get("embedding.weight"))]
    for i in range(c.layers):
        block, hf, gg = f"blocks.{i}.", f"model.layers.{i}.", f"blk.{i}."
        qkv, gate_up = get(block + "qkv.weight"), get(block + "gate_up.weight")
        bias = get(block + "qkv.bias") if c.qkv_bias else np.zeros(q + 2 * kv, np.float32)
        out.append((hf + "input_layernorm.weight", gg + "attn_norm.weight", get(block + "attn_norm.weight")))
        for part, begin, end in (("q", 0, q), ("k", q, q + kv), ("v", q + kv, q + 2 * kv)):
            out.append((f"{hf}self_attn.{part}_proj.weight", f"{gg}attn_{part}.weight", qkv[begin:end]))
            out.append((f"{hf}self_attn.{part}_proj.bias", f"{gg}attn_{part}.bias", bias[begin:end]))
        out += [(hf + "self_attn.o_proj.weight", gg + "attn_output.weight", get(block + "attn_out.weight")),
                (hf + "post_attention_layernorm.weight", gg + "ffn_norm.weight", get(block + "ffn_norm.weight")),
                (hf + "mlp.gate_proj.weight", gg + "ffn_gate.weight", gate_up[:c.ffn]),
                (hf + "mlp.up_proj.weight", gg + "ffn_up.weight", gate_up[c.ffn:]),
                (hf + "mlp.down_proj.weight", gg + "ffn_down.weight", get(block + "ffn_down.weight"))]
    return out + [("model.norm.weight", "output_norm.weight", get("norm.weight"))]


def q8_0(array):
    x = array.reshape(-1, 32)
    d = (np.abs(x).max(1) / 127).astype(np.float32)
    inverse = np.divide(1, d, out=np.zeros_like(d), where=d > 0)
    out = np.empty((len(x), 34), np.uint8)
    out[:, :2] = d.astype("<f2").view(np.uint8).reshape(-1, 2)
    out[:, 2:] = np.rint(x * inverse[:, None]).astype(np.int8).view(np.uint8)
    return out.tobytes()


ENCODERS = {"F32": (0, 0, lambda a: a.astype("<f4").tobytes()), "F16": (1, 1, lambda a: a.astype("<f2").tobytes()),
            "Q8_0": (8, 7, q8_0)}  # type: (tensor type, file type, encoder)


def write_safetensors(path, tensors):
    header, blobs, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name, _, array in tensors:
        blob = array.astype("<f2").tobytes()
        header[name] = dict(dtype="F16", shape=list(array.shape), data_offsets=[offset, offset + len(blob)])
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def write_gguf(path, tensors, c, tokenizer, name, kind):
    string = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()
    fields = []
    put = lambda key, kind, value: fields.append(string(key) + struct.pack("<I", kind) + value)
    u32 = lambda key, value: put(key, 4, struct.pack("<I", value))
    text = lambda key, value: put(key, 8, string(value))
    strings = lambda key, values: put(key, 9, struct.pack("<IQ", 8, len(values)) + b"".join(map(string, values)))
    text("general.architecture", "qwen2")
    text("general.name", name)
    u32("general.file_type", ENCODERS[kind][1])
    u32("general.alignment", 32)
    for key, value in (("context_length", c.context), ("embedding_length", c.d), ("block_count", c.layers),
                       ("feed_forward_length", c.ffn), ("attention.head_count", c.heads), ("attention.head_count_kv", c.kv)):
        u32("qwen2." + key, value)
    put("qwen2.rope.freq_base", 6, struct.pack("<f", c.theta))
    put("qwen2.attention.layer_norm_rms_epsilon", 6, struct.pack("<f", c.eps))
    text("tokenizer.ggml.model", "gpt2")
    text("tokenizer.ggml.pre", "qwen2")
    strings("tokenizer.ggml.tokens", tokenizer.tokens)
    types = [3 if t in SPECIAL else 1 for t in tokenizer.tokens]
    put("tokenizer.ggml.token_type", 9, struct.pack("<IQ", 5, len(types)) + struct.pack(f"<{len(types)}i", *types))
    strings("tokenizer.ggml.merges", [" ".join(m) for m in tokenizer.merges])
    u32("tokenizer.ggml.bos_token_id", tokenizer.end_of_text)
    u32("tokenizer.ggml.eos_token_id", tokenizer.im_end)
    u32("tokenizer.ggml.padding_token_id", tokenizer.end_of_text)
    put("tokenizer.ggml.add_bos_token", 7, b"\0")
    text("tokenizer.chat_template", TEMPLATE)
    put("fixpoint.program_start_given", 7, b"\1")
    infos, blobs, offset = [], [], 0
    for _, tensor, array in tensors:
        number, _, encode = ENCODERS["F32" if array.ndim == 1 else kind]
        blob = encode(array)
        blob += b"\0" * (-len(blob) % 32)
        dims = b"".join(struct.pack("<Q", n) for n in array.shape[::-1])
        infos.append(string(tensor) + struct.pack("<I", array.ndim) + dims + struct.pack("<IQ", number, offset))
        offset += len(blob)
        blobs.append(blob)
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields)) + b"".join(fields) + b"".join(infos))
        file.write(b"\0" * (-file.tell() % 32) + b"".join(blobs))


def main():
    checkpoint_path, tokenizer_path, out, name = sys.argv[1:5]
    checkpoint = torch.load(checkpoint_path, map_location="cpu")
    c, tokenizer = Config(**checkpoint["config"]), Tokenizer.load(tokenizer_path)
    if len(tokenizer.tokens) != c.vocab:
        sys.exit(f"{tokenizer_path}: {len(tokenizer.tokens)} tokens, but the model has {c.vocab}")
    tensors = named_tensors(checkpoint["network"], c)
    os.makedirs(out, exist_ok=True)
    tokenizer.save(out + "/tokenizer.json")
    config = dict(architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_size=c.d, intermediate_size=c.ffn,
                  num_hidden_layers=c.layers, num_attention_heads=c.heads, num_key_value_heads=c.kv, vocab_size=c.vocab,
                  max_position_embeddings=c.context, rope_theta=c.theta, rms_norm_eps=c.eps, hidden_act="silu",
                  tie_word_embeddings=True, use_sliding_window=False, bos_token_id=tokenizer.end_of_text,
                  eos_token_id=tokenizer.im_end, pad_token_id=tokenizer.end_of_text, torch_dtype="float16")
    with open(out + "/config.json", "w") as file:
        json.dump(config, file, indent=1)
    with open(out + "/tokenizer_config.json", "w") as file:
        json.dump(dict(tokenizer_class="Qwen2Tokenizer", add_bos_token=False, bos_token=None, eos_token="<|im_end|>",
                       pad_token="<|endoftext|>", model_max_length=c.context, chat_template=TEMPLATE,
                       fixpoint_program_start_given=True), file, indent=1)
    write_safetensors(out + "/model.safetensors", tensors)
    for kind in ENCODERS:
        write_gguf(f"{out}/{name}-{kind}.gguf", tensors, c, tokenizer, name, kind)
    for file in sorted(os.listdir(out)):
        print(f"{file:32} {os.path.getsize(os.path.join(out, file)) / 1e6:8.2f} MB")


if __name__ == "__main__":
    main()
