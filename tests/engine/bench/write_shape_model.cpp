// Writes a GGUF file with the shapes of a known model and random BF16 weights, for measuring speed without downloading one.
//   write_shape_model 0.5b|7b FILE
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/half.h"
#include "tests/engine/models/gguf_writer.h"
#include "tests/engine/models/test_vocabulary.h"

namespace fixpoint::test_models {
namespace {

struct ModelShape {
  std::uint64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary;
  bool tied;
};

/// Qwen2.5's published shapes.
const std::map<std::string, ModelShape> kShapes{{"0.5b", {24, 896, 14, 2, 64, 4864, 151936, true}},
                                                {"7b", {28, 3584, 28, 4, 128, 18944, 152064, false}}};

struct PlannedTensor {
  std::string name;
  std::uint64_t rows, cols;  ///< rows 0: a vector of F32
};

std::vector<PlannedTensor> plan(const ModelShape& s) {
  std::vector<PlannedTensor> all{{"token_embd.weight", s.vocabulary, s.hidden}, {"output_norm.weight", 0, s.hidden}};
  if (!s.tied) all.push_back({"output.weight", s.vocabulary, s.hidden});
  for (std::uint64_t i = 0; i < s.layers; ++i) {
    const std::string layer = "blk." + std::to_string(i) + ".";
    const auto add = [&](const char* name, std::uint64_t rows, std::uint64_t cols) { all.push_back({layer + name, rows, cols}); };
    add("attn_norm.weight", 0, s.hidden);
    add("ffn_norm.weight", 0, s.hidden);
    add("attn_q.weight", s.heads * s.head_dim, s.hidden);
    add("attn_k.weight", s.kv_heads * s.head_dim, s.hidden);
    add("attn_v.weight", s.kv_heads * s.head_dim, s.hidden);
    add("attn_q.bias", 0, s.heads * s.head_dim);
    add("attn_k.bias", 0, s.kv_heads * s.head_dim);
    add("attn_v.bias", 0, s.kv_heads * s.head_dim);
    add("attn_output.weight", s.hidden, s.heads * s.head_dim);
    add("ffn_gate.weight", s.ffn, s.hidden);
    add("ffn_up.weight", s.ffn, s.hidden);
    add("ffn_down.weight", s.hidden, s.ffn);
  }
  return all;
}

void put_head(GgufWriter& w, const ModelShape& s) {
  w.text("general.architecture", "qwen2");
  w.text("general.name", "random weights");
  const auto u32 = [&](const char* field, std::uint64_t value) { w.u32(std::string("qwen2") + field, static_cast<std::uint32_t>(value)); };
  u32(".context_length", 32768);
  u32(".embedding_length", s.hidden);
  u32(".block_count", s.layers);
  u32(".feed_forward_length", s.ffn);
  u32(".attention.head_count", s.heads);
  u32(".attention.head_count_kv", s.kv_heads);
  w.f32("qwen2.attention.layer_norm_rms_epsilon", 1e-6F);
  w.f32("qwen2.rope.freq_base", 1e6F);
  const engine::TokenizerSpec t = byte_level_vocabulary(static_cast<std::int64_t>(s.vocabulary));
  w.text("tokenizer.ggml.model", "gpt2");
  w.text("tokenizer.ggml.pre", "qwen2");
  w.strings("tokenizer.ggml.tokens", t.tokens);
  std::vector<std::int32_t> types;
  for (const auto type : t.types) types.push_back(static_cast<std::int32_t>(type));
  w.i32s("tokenizer.ggml.token_type", types);
  std::vector<std::string> merges;
  for (const auto& [a, b] : t.merges) merges.push_back(a + " " + b);
  w.strings("tokenizer.ggml.merges", merges);
  w.text("tokenizer.chat_template", kChatMlTemplate);
  w.u32("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(*t.bos));
  w.u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(*t.eos));
  w.boolean("tokenizer.ggml.add_bos_token", false);
}

std::uint64_t padded_bytes(const PlannedTensor& t) {
  const std::uint64_t bytes = t.rows == 0 ? t.cols * 4 : t.rows * t.cols * 2;
  return (bytes + 31) / 32 * 32;
}

void write(const std::string& path, const ModelShape& shape) {
  const auto tensors = plan(shape);
  GgufWriter head;
  put_head(head, shape);
  std::uint64_t offset = 0;
  for (const PlannedTensor& t : tensors) {
    std::vector<std::uint64_t> dims{t.cols};
    if (t.rows > 0) dims.push_back(t.rows);
    head.entry(t.name, t.rows > 0 ? 30 : 0, dims, offset);
    offset += padded_bytes(t);
  }
  // Speed does not depend on the values: one piece of random ones is written again and again. Small enough that activations
  // stay in range in every layer.
  std::mt19937 random(1);
  std::uniform_real_distribution<float> values(-0.03F, 0.03F);
  std::vector<std::uint16_t> piece(std::size_t{1} << 22U);
  for (auto& value : piece) value = kernels::f32_to_bf16(values(random));
  std::ofstream out(path, std::ios::binary);
  auto bytes = head.bytes();
  bytes.resize((bytes.size() + 31) / 32 * 32);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  for (const PlannedTensor& t : tensors) {
    if (t.rows == 0) {
      std::vector<float> vector(padded_bytes(t) / 4, t.name.ends_with("bias") ? 0.0F : 1.0F);
      out.write(reinterpret_cast<const char*>(vector.data()), static_cast<std::streamsize>(vector.size() * 4));
      continue;
    }
    for (std::uint64_t left = padded_bytes(t); left > 0;) {
      const std::uint64_t now = std::min<std::uint64_t>(left, piece.size() * 2);
      out.write(reinterpret_cast<const char*>(piece.data()), static_cast<std::streamsize>(now));
      left -= now;
    }
  }
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace
}  // namespace fixpoint::test_models

int main(int argc, char** argv) {
  using fixpoint::test_models::kShapes;
  if (argc != 3 || !kShapes.contains(argv[1])) {
    std::fprintf(stderr, "usage: write_shape_model 0.5b|7b FILE\n");
    return 2;
  }
  try {
    fixpoint::test_models::write(argv[2], kShapes.at(argv[1]));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "write_shape_model: %s\n", e.what());
    return 1;
  }
}
