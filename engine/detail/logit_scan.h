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

/// weights[i] = exp((logits[i] - max) * inverse_temperature), relative error below 3e-7; sums per block in a fixed order.
/// Returns the total.
double exponentiate(std::span<const float> logits, float max, float inverse_temperature, std::span<float> weights,
                    std::vector<double>& block_sum);

/// exp(x) for x <= 0; 0 below -87.
[[nodiscard]] float exp_nonpositive(float x);

}  // namespace fixpoint::engine::detail
