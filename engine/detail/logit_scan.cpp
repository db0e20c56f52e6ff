#include "engine/detail/logit_scan.h"

#include <algorithm>
#include <array>
#include <limits>

#include "kernels/row_choice.h"

namespace fixpoint::engine::detail {
namespace {

constexpr std::size_t lanes = 16;
constexpr float infinity = std::numeric_limits<float>::infinity();

struct BlockScan {
  float max = -infinity;
  bool invalid = false;
};

BlockScan scan(const float* values, std::size_t n) {
  std::array<float, lanes> max;
  std::array<std::int32_t, lanes> bad{};
  max.fill(-infinity);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float value = values[i + lane];
      max[lane] = value > max[lane] ? value : max[lane];
      bad[lane] |= value < infinity ? 0 : 1;  // NaN and +inf
    }
  }
  for (; i < n; ++i) {
    max[0] = values[i] > max[0] ? values[i] : max[0];
    bad[0] |= values[i] < infinity ? 0 : 1;
  }
  BlockScan result;
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    result.max = std::max(result.max, max[lane]);
    result.invalid = result.invalid || bad[lane] != 0;
  }
  return result;
}

/// The sum of fixed_point(weight), exactly, with 32 bit operations alone: each weight in two halves of 20 bits.
std::uint64_t sum_fixed_point(const float* weights, std::size_t n) {
  constexpr float half = 0x1p20F;
  std::array<std::int32_t, lanes> high{};
  std::array<std::int32_t, lanes> low{};
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float scaled = weights[i + lane] * half;
      const auto whole = static_cast<std::int32_t>(scaled);
      high[lane] += whole;
      low[lane] += static_cast<std::int32_t>((scaled - static_cast<float>(whole)) * half);
    }
  }
  std::uint64_t sum = 0;
  for (; i < n; ++i) sum += kernels::fixed_point(weights[i]);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    sum += (static_cast<std::uint64_t>(high[lane]) << 20U) + static_cast<std::uint64_t>(low[lane]);
  }
  return sum;
}

}  // namespace

std::uint64_t token_weight(float logit, float max, float inverse_temperature) {
  return kernels::token_weight(logit, max, inverse_temperature);
}

Maximum find_maximum(std::span<const float> logits, std::vector<float>& block_max) {
  block_max.resize((logits.size() + scan_block - 1) / scan_block);
  Maximum result{-infinity, 0, true};
  std::size_t best_block = 0;
  for (std::size_t block = 0; block < block_max.size(); ++block) {
    const std::size_t begin = block * scan_block;
    const BlockScan found = scan(logits.data() + begin, std::min(scan_block, logits.size() - begin));
    block_max[block] = found.max;
    if (found.invalid) result.valid = false;
    if (found.max > result.value) {
      result.value = found.max;
      best_block = block;
    }
  }
  if (result.value == -infinity) result.valid = false;
  if (!result.valid) return result;
  const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(best_block * scan_block);
  result.index = static_cast<std::size_t>(std::find(begin, logits.end(), result.value) - logits.begin());
  return result;
}

std::uint64_t exponentiate(std::span<const float> logits, float max, float inverse_temperature, std::span<float> weights,
                           std::vector<std::uint64_t>& block_sum) {
  block_sum.resize((logits.size() + scan_block - 1) / scan_block);
  std::uint64_t total = 0;
  for (std::size_t block = 0; block < block_sum.size(); ++block) {
    const std::size_t begin = block * scan_block;
    const std::size_t n = std::min(scan_block, logits.size() - begin);
    const float* in = logits.data() + begin;
    float* out = weights.data() + begin;
    for (std::size_t i = 0; i < n; ++i) out[i] = kernels::exp_nonpositive((in[i] - max) * inverse_temperature);
    block_sum[block] = sum_fixed_point(out, n);
    total += block_sum[block];
  }
  return total;
}

}  // namespace fixpoint::engine::detail
