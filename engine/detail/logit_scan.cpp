#include "engine/detail/logit_scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

namespace fixpoint::engine::detail {
namespace {

constexpr std::size_t lanes = 16;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// 2^n * p(f) with x = (n + f) ln 2, |f| <= 1/2; p is the Taylor polynomial of e^r. Branch-free, so that loops vectorise.
inline float exp_inline(float x) {
  constexpr float log2e = 1.44269504F;
  constexpr float ln2_high = 0.693359375F;
  constexpr float ln2_low = -2.12194440e-4F;
  constexpr float round_magic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const float clamped = x > -87.0F ? x : -87.0F;
  const float shifted = clamped * log2e + round_magic;
  const float n = shifted - round_magic;
  const float r = (clamped - n * ln2_high) - n * ln2_low;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  // The low bits of `shifted` are n; -87 keeps n above -126, so the exponent field stays in range.
  const auto exponent = (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(round_magic) + 127U) << 23U;
  const float value = p * std::bit_cast<float>(exponent);
  return x > -87.0F ? value : 0.0F;
}

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

}  // namespace

float exp_nonpositive(float x) { return exp_inline(x); }

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

double exponentiate(std::span<const float> logits, float max, float inverse_temperature, std::span<float> weights,
                    std::vector<double>& block_sum) {
  block_sum.resize((logits.size() + scan_block - 1) / scan_block);
  double total = 0.0;
  for (std::size_t block = 0; block < block_sum.size(); ++block) {
    const std::size_t begin = block * scan_block;
    const std::size_t n = std::min(scan_block, logits.size() - begin);
    const float* in = logits.data() + begin;
    float* out = weights.data() + begin;
    for (std::size_t i = 0; i < n; ++i) out[i] = exp_inline((in[i] - max) * inverse_temperature);
    std::array<float, lanes> sums{};
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += out[i + lane];
    }
    double sum = 0.0;
    for (; i < n; ++i) sum += static_cast<double>(out[i]);
    for (const float lane : sums) sum += static_cast<double>(lane);
    block_sum[block] = sum;
    total += sum;
  }
  return total;
}

}  // namespace fixpoint::engine::detail
