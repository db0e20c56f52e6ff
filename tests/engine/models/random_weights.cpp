#include "tests/engine/models/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

namespace fixpoint::test_models {
namespace {

using engine::Architecture;
using kernels::DType;

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

std::uint64_t hash(std::string_view text) {  // FNV-1a
  std::uint64_t h = 0xCBF29CE484222325ULL;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return h;
}

/// Nearly normal, mean 0 and variance 1: the sum of four 16-bit integers, exact, so that files are equal everywhere.
float bell(std::uint64_t bits) {
  std::int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<std::int64_t>((bits >> (16 * i)) & 0xFFFF);
  return static_cast<float>(sum - 2 * 65535) * (1.7320508F / 65536.0F);
}

class Draw {
 public:
  explicit Draw(const RandomModelSpec& spec) : s_(spec) {}

  void matrix(const std::string& name, const std::string& hf, std::int64_t rows, std::int64_t cols, DType type, float std) {
    const auto block = kernels::traits(type).block_elements;
    add(name, hf, rows, cols, cols % block == 0 ? type : s_.fallback, 0.0F, std);
  }
  void vector(const std::string& name, const std::string& hf, std::int64_t cols, float mean, float std) {
    add(name, hf, 0, cols, DType::f32, mean, std);
  }
  [[nodiscard]] std::vector<RandomTensor> take() { return std::move(out_); }

 private:
  void add(const std::string& name, const std::string& hf, std::int64_t rows, std::int64_t cols, DType type, float mean,
           float std) {
    RandomTensor t{name, hf, type, rows, cols, {}};
    const auto stream = mix(s_.seed + 0x9E3779B97F4A7C15ULL) ^ hash(name);
    t.values.resize(static_cast<std::size_t>(std::max<std::int64_t>(rows, 1) * cols));
    for (std::size_t i = 0; i < t.values.size(); ++i) {
      // In double the product is exact, so that fused and separate arithmetic agree.
      const double x = bell(mix(stream + (i + 1) * 0x9E3779B97F4A7C15ULL));
      t.values[i] = static_cast<float>(double{mean} + double{std} * x);
    }
    out_.push_back(std::move(t));
  }

  const RandomModelSpec& s_;
  std::vector<RandomTensor> out_;
};

void draw_layer(Draw& draw, const RandomModelSpec& s, std::int64_t layer) {
  const std::string g = "blk." + std::to_string(layer) + ".";
  const std::string h = "model.layers." + std::to_string(layer) + ".";
  const auto q = s.num_heads * s.head_dim;
  const auto kv = s.num_kv_heads * s.head_dim;
  const auto down = s.down_type.value_or(s.type);
  const auto scale = [&](std::int64_t fan_in) { return s.gain / std::sqrt(static_cast<float>(fan_in)); };
  draw.vector(g + "attn_norm.weight", h + "input_layernorm.weight", s.hidden, 1.0F, 0.1F);
  draw.matrix(g + "attn_q.weight", h + "self_attn.q_proj.weight", q, s.hidden, s.type, scale(s.hidden));
  draw.matrix(g + "attn_k.weight", h + "self_attn.k_proj.weight", kv, s.hidden, s.type, scale(s.hidden));
  draw.matrix(g + "attn_v.weight", h + "self_attn.v_proj.weight", kv, s.hidden, down, scale(s.hidden));
  if (s.qkv_bias || s.arch == Architecture::qwen2) {
    draw.vector(g + "attn_q.bias", h + "self_attn.q_proj.bias", q, 0.0F, 0.2F);
    draw.vector(g + "attn_k.bias", h + "self_attn.k_proj.bias", kv, 0.0F, 0.2F);
    draw.vector(g + "attn_v.bias", h + "self_attn.v_proj.bias", kv, 0.0F, 0.2F);
  }
  if (s.arch == Architecture::qwen3) {
    draw.vector(g + "attn_q_norm.weight", h + "self_attn.q_norm.weight", s.head_dim, 1.0F, 0.1F);
    draw.vector(g + "attn_k_norm.weight", h + "self_attn.k_norm.weight", s.head_dim, 1.0F, 0.1F);
  }
  draw.matrix(g + "attn_output.weight", h + "self_attn.o_proj.weight", s.hidden, q, s.type, scale(q));
  draw.vector(g + "ffn_norm.weight", h + "post_attention_layernorm.weight", s.hidden, 1.0F, 0.1F);
  draw.matrix(g + "ffn_gate.weight", h + "mlp.gate_proj.weight", s.ffn, s.hidden, s.type, scale(s.hidden));
  draw.matrix(g + "ffn_up.weight", h + "mlp.up_proj.weight", s.ffn, s.hidden, s.type, scale(s.hidden));
  draw.matrix(g + "ffn_down.weight", h + "mlp.down_proj.weight", s.hidden, s.ffn, down, scale(s.ffn));
}

}  // namespace

std::vector<RandomTensor> random_tensors(const RandomModelSpec& s) {
  constexpr std::int64_t kControls = 3;
  Draw draw(s);
  const auto embedding = s.embedding_type.value_or(s.type);
  const float std = 1.0F / std::sqrt(static_cast<float>(s.hidden));
  draw.matrix("token_embd.weight", "model.embed_tokens.weight", s.vocab, s.hidden, embedding, std);
  for (std::int64_t i = 0; i < s.num_layers; ++i) draw_layer(draw, s, i);
  draw.vector("output_norm.weight", "model.norm.weight", s.hidden, 1.0F, 0.1F);
  if (!s.tied) draw.matrix("output.weight", "lm_head.weight", s.vocab, s.hidden, embedding, std);
  auto tensors = draw.take();
  if (s.silent_controls) {
    auto& output = s.tied ? tensors.front() : tensors.back();
    const auto end = output.values.begin() + (s.vocab - s.vocab_padding) * s.hidden;
    std::fill(end - kControls * s.hidden, end, 0.0F);
  }
  return tensors;
}

void to_adjacent_pairs(std::vector<float>& values, std::int64_t cols, std::int64_t head_dim, std::int64_t rotary_dim) {
  const auto old = values;
  const auto rows = static_cast<std::int64_t>(values.size()) / cols;
  const auto half = rotary_dim / 2;
  for (std::int64_t head = 0; head < rows / head_dim; ++head) {
    for (std::int64_t i = 0; i < rotary_dim; ++i) {
      const auto from = head * head_dim + i;
      const auto to = head * head_dim + (i < half ? 2 * i : 2 * (i - half) + 1);
      std::copy_n(old.begin() + from * cols, cols, values.begin() + to * cols);
    }
  }
}

}  // namespace fixpoint::test_models
