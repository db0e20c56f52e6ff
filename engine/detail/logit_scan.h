#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fixpoint::engine::detail {

/// Ids are scanned in blocks of this many; small enough that a block's maximum prunes well.
inline constexpr std::size_t scan_block = 128;

struct Maximum {
  float value = 0.0F;
  std::size_t index = 0;   ///< the first that has it
  bool valid = false;      ///< no NaN, no +inf, and something above -inf
};

/// Also fills `block_max` [ceil(n / scan_block)].
[[nodiscard]] Maximum find_maximum(std::span<const float> logits, std::vector<float>& block_max);

/// weights[i] = exp((logits[i] - max) * inverse_temperature), of which kernels::fixed_point makes the weight; the sums of those
/// per block. Returns the total.
std::uint64_t exponentiate(std::span<const float> logits, float max, float inverse_temperature, std::span<float> weights,
                           std::vector<std::uint64_t>& block_sum);

/// kernels::token_weight.
[[nodiscard]] std::uint64_t token_weight(float logit, float max, float inverse_temperature);

}  // namespace fixpoint::engine::detail
