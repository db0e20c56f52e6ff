#include <cmath>
#include <fstream>
#include <numbers>
#include <stdexcept>
#include <vector>

#include "kernels/quant.h"
#include "tests/engine/models/gguf_writer.h"
#include "tests/engine/models/random_formats.h"
#include "tests/engine/models/random_weights.h"
#include "tests/engine/models/test_vocabulary.h"

namespace fixpoint::test_models {
namespace {

using engine::Architecture;
using engine::RopeScaling;
using engine::TokenizerSpec;
using kernels::DType;

std::uint32_t ggml_type(DType type) {
  switch (type) {
    case DType::f32: return 0;
    case DType::f16: return 1;
    case DType::q4_0: return 2;
    case DType::q4_1: return 3;
    case DType::q5_0: return 6;
    case DType::q5_1: return 7;
    case DType::q8_0: return 8;
    case DType::q4_k: return 12;
    case DType::q5_k: return 13;
    case DType::q6_k: return 14;
    case DType::bf16: return 30;
  }
  throw std::invalid_argument("unknown type");
}

void put_config(GgufWriter& w, const RandomModelSpec& s) {
  const std::string arch(to_string(s.arch));
  const auto u32 = [&](const char* field, std::int64_t value) { w.u32(arch + field, static_cast<std::uint32_t>(value)); };
  w.text("general.architecture", arch);
  w.text("general.name", "random " + arch);
  u32(".context_length", s.context);
  u32(".embedding_length", s.hidden);
  u32(".block_count", s.num_layers);
  u32(".feed_forward_length", s.ffn);
  u32(".attention.head_count", s.num_heads);
  u32(".attention.head_count_kv", s.num_kv_heads);
  if (s.head_dim * s.num_heads != s.hidden || s.arch == Architecture::qwen3) {
    u32(".attention.key_length", s.head_dim);
    u32(".attention.value_length", s.head_dim);
  }
  w.f32(arch + ".attention.layer_norm_rms_epsilon", 1e-5F);
  w.f32(arch + ".rope.freq_base", s.rope_theta);
  if (s.rotary_dim || s.arch == Architecture::llama) u32(".rope.dimension_count", s.rotary_dim.value_or(s.head_dim));
  const auto& rope = s.rope_scaling;
  if (rope.kind == RopeScaling::Kind::linear || rope.kind == RopeScaling::Kind::yarn) {
    w.text(arch + ".rope.scaling.type", rope.kind == RopeScaling::Kind::linear ? "linear" : "yarn");
    w.f32(arch + ".rope.scaling.factor", rope.factor);
    if (rope.original_context > 0) u32(".rope.scaling.original_context_length", rope.original_context);
  }
}

void put_tokenizer(GgufWriter& w, const TokenizerSpec& t) {
  const bool bpe = t.kind == TokenizerSpec::Kind::byte_level_bpe;
  w.text("tokenizer.ggml.model", bpe ? "gpt2" : "llama");
  w.text("tokenizer.ggml.pre", bpe ? "qwen2" : "default");
  w.strings("tokenizer.ggml.tokens", t.tokens);
  std::vector<std::int32_t> types;
  for (const auto type : t.types) types.push_back(static_cast<std::int32_t>(type));
  w.i32s("tokenizer.ggml.token_type", types);
  if (bpe) {
    std::vector<std::string> merges;
    for (const auto& [a, b] : t.merges) merges.push_back(a + " " + b);
    w.strings("tokenizer.ggml.merges", merges);
    w.text("tokenizer.chat_template", kChatMlTemplate);
  } else {
    w.floats("tokenizer.ggml.scores", t.scores);
    w.u32("tokenizer.ggml.unknown_token_id", static_cast<std::uint32_t>(*t.unk));
  }
  w.u32("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(*t.bos));
  w.u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(*t.eos));
  w.boolean("tokenizer.ggml.add_bos_token", t.add_bos);
}

/// Divisors of the rotation frequencies, as converters write them for Llama-3.1 (formula: Llama-3.1 reference code).
std::vector<float> llama3_divisors(const RandomModelSpec& s) {
  const auto dim = s.rotary_dim.value_or(s.head_dim);
  const auto& r = s.rope_scaling;
  const auto original = static_cast<double>(r.original_context);
  std::vector<float> out;
  for (std::int64_t i = 0; i < dim / 2; ++i) {
    const double turns = std::pow(static_cast<double>(s.rope_theta), -2.0 * static_cast<double>(i) / static_cast<double>(dim)) *
                         original / (2 * std::numbers::pi);
    if (turns < r.low_freq_factor) {
      out.push_back(r.factor);
    } else if (turns > r.high_freq_factor) {
      out.push_back(1.0F);
    } else {
      const double smooth = (turns - r.low_freq_factor) / (r.high_freq_factor - r.low_freq_factor);
      out.push_back(static_cast<float>(1.0 / ((1.0 - smooth) / r.factor + smooth)));
    }
  }
  return out;
}

void put_tensor(GgufWriter& w, const RandomModelSpec& s, RandomTensor t) {
  const bool paired = t.name.ends_with("attn_q.weight") || t.name.ends_with("attn_k.weight") ||
                      t.name.ends_with("attn_q.bias") || t.name.ends_with("attn_k.bias");
  if (s.arch == Architecture::llama && paired) {
    to_adjacent_pairs(t.values, t.rows == 0 ? 1 : t.cols, s.head_dim, s.rotary_dim.value_or(s.head_dim));
  }
  std::vector<std::byte> data(t.values.size() / static_cast<std::size_t>(t.cols) *
                              static_cast<std::size_t>(kernels::row_bytes(t.type, t.cols)));
  kernels::quantize_row(t.type, t.values.data(), data.data(), static_cast<std::int64_t>(t.values.size()));
  std::vector<std::uint64_t> dims{static_cast<std::uint64_t>(t.cols)};
  if (t.rows > 0) dims.push_back(static_cast<std::uint64_t>(t.rows));
  w.tensor(t.name, ggml_type(t.type), dims, data);
}

}  // namespace

void write_gguf_model(const std::filesystem::path& path, const RandomModelSpec& s, const TokenizerSpec& tokenizer) {
  GgufWriter w;
  put_config(w, s);
  put_tokenizer(w, tokenizer);
  for (auto& t : random_tensors(s)) put_tensor(w, s, std::move(t));
  if (s.rope_scaling.kind == RopeScaling::Kind::llama3) {
    const auto divisors = llama3_divisors(s);
    const std::uint64_t count = divisors.size();
    w.tensor("rope_freqs.weight", 0, std::span(&count, 1), std::as_bytes(std::span(divisors)));
  }
  write_file(path, w.bytes());
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace fixpoint::test_models
