#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/step_model.h"

namespace fixpoint::engine {

struct KvComparisonOptions {
  kernels::KvType baseline = kernels::KvType::f16;
  std::int64_t window = 512;     ///< tokens of text that are computed with an empty cache before them
  std::int64_t compared = 64;    ///< positions at the end of a window whose logits are compared
  std::int32_t block_size = 16;
};

/// What storing keys and values as `type` changes in a model's logits, beside the same model with those of the baseline.
struct KvComparison {
  kernels::KvType type = kernels::KvType::f16;
  std::int64_t positions = 0;
  double mean_error = 0;      ///< of a logit's absolute difference, over positions and vocabulary
  double largest_error = 0;
  double mean_divergence = 0;    ///< Kullback-Leibler divergence of the distributions from the baseline's, in nats
  double largest_divergence = 0;
  double same_first = 0;      ///< share of the positions whose likeliest token is the baseline's
};

/// Computes the text in windows, each type with the same tokens before each position (nothing is sampled), and compares the
/// logits. Text after the last whole window counts where it is all there is. `model` is given new KV memory for every type.
/// Precondition: a window fits the model's context; tokens is not empty.
[[nodiscard]] std::vector<KvComparison> compare_kv_types(StepModel& model, std::span<const TokenId> tokens,
                                                         std::span<const kernels::KvType> types,
                                                         const KvComparisonOptions& options = {});

}  // namespace fixpoint::engine
