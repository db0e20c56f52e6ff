#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/backend.h"

namespace fixpoint::engine {

enum class Architecture : std::uint8_t { llama, qwen2, qwen3 };
[[nodiscard]] std::string_view to_string(Architecture arch);

/// How positions beyond the trained context are mapped.
struct RopeScaling {
  enum class Kind : std::uint8_t { none, linear, llama3, yarn };
  Kind kind = Kind::none;
  float factor = 1.0F;
  std::int64_t original_context = 0;
  float low_freq_factor = 1.0F;   ///< llama3
  float high_freq_factor = 4.0F;  ///< llama3
  float beta_fast = 32.0F;        ///< yarn
  float beta_slow = 1.0F;         ///< yarn
  float attn_factor = 0.0F;       ///< yarn: cos/sin magnitude; 0 means 0.1 ln(factor) + 1
};

/// Hyperparameters of a decoder-only transformer, as read from a model file and checked for consistency.
struct ModelConfig {
  Architecture arch = Architecture::llama;
  std::string name;
  std::int64_t vocab_size = 0;  ///< rows of the embedding
  std::int64_t hidden = 0;
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;  ///< not always hidden / num_heads
  std::int64_t ffn = 0;
  std::int64_t context_length = 0;
  float rms_eps = 1e-5F;
  bool tied_embeddings = false;  ///< the output projection is the embedding
  bool qkv_bias = false;
  bool qk_norm = false;

  kernels::RopePairing rope_pairing = kernels::RopePairing::half_split;
  float rope_theta = 10000.0F;
  std::int64_t rotary_dim = 0;  ///< elements of a head that are rotated
  RopeScaling rope_scaling;
  std::vector<float> rope_divisors;  ///< GGUF rope_freqs.weight [rotary_dim / 2], already holds llama3 scaling; or empty
};

/// inv_freq and magnitude from theta, scaling and divisors (formulas: Llama-3.1 and YaRN papers).
[[nodiscard]] kernels::Rope make_rope(const ModelConfig& config);

}  // namespace fixpoint::engine
