#pragma once

#include <cstdint>

#include "engine/model_config.h"
#include "engine/model_file.h"
#include "kernels/kv_type.h"

namespace fixpoint::engine {

using kernels::KvType;

/// Bytes of keys and values that one token of context takes over all layers, scales included. From shapes alone, as all here:
/// what a backend pads (blocks that are no multiple of 16 tokens, odd head dimensions) is in StepModel::kv_bytes_per_block only.
[[nodiscard]] std::int64_t kv_bytes_per_token(const ModelConfig& config, KvType type);

/// Contexts of `tokens` tokens that fit beside the weights; blocks are whole. 0 when the weights do not fit.
[[nodiscard]] std::int64_t users_that_fit(const ModelConfig& config, KvType type, std::int64_t tokens, double memory_bytes,
                                          double weight_bytes, std::int32_t block_size = 16);

/// Sequences of the model's whole context that a GiB of keys and values holds.
[[nodiscard]] double full_contexts_per_gib(const ModelConfig& config, KvType type);

/// What one token costs, from shapes alone: a multiply-add is 2 FLOPs.
struct Footprint {
  std::int64_t parameters = 0;
  double weight_bytes = 0;            ///< of every tensor
  double decode_weight_bytes = 0;     ///< read for a decode step: all matrices, the output projection, one embedding row
  double layer_flops = 0;             ///< per token, matrices of the layers
  double output_flops = 0;            ///< per token whose logits are wanted
  double attention_flops_per_pair = 0;  ///< per token and attended position, all layers
};

[[nodiscard]] Footprint footprint(const ModelFile& file);

/// FLOPs per prompt token of a prefill of `tokens` from an empty cache (causal: half the square; logits for the last).
[[nodiscard]] double prefill_flops_per_token(const Footprint& footprint, std::int64_t tokens);
/// FLOPs per generated token at a context of `context` tokens.
[[nodiscard]] double decode_flops_per_token(const Footprint& footprint, std::int64_t context);

}  // namespace fixpoint::engine
