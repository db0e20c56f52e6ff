#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace fixpoint::kernels {

/// How the token of one row of logits is chosen: temperature, min_p, top_k and top_p, in this order, each on what the one before
/// it left; of equally likely tokens lower ids are kept first. What is kept is drawn from.
struct RowChoice {
  std::int32_t row = 0;              ///< of the logits
  std::int32_t vocab_size = 0;       ///< ids from here on are padding: nobody looks at them
  float inverse_temperature = 0.0F;  ///< 0: the first of the largest logits, and nothing below matters
  float depth = std::numeric_limits<float>::infinity();  ///< logits below largest - depth are left out
  std::int32_t top_k = 0;            ///< the k largest logits are kept; 0: all
  float top_p = 1.0F;                ///< the largest logits are kept whose weights reach this share
  double u = 0.0;                    ///< in [0, 1): what to draw
};

// The arithmetic of a choice, shared by all that choose, so that the same row and the same u give the same token everywhere.
// Weights are integers: their sums are exact, in whatever order they are added. The operations on floats below are single
// roundings in one order; whoever compiles them must not contract them (-ffp-contract=off, --fmad=false).

/// exp(x) for x <= 0, relative error below 3e-7, and 1 at 0; 0 from -28 down, which is no weight.
/// 2^n * p(f) with x = (n + f) ln 2, |f| <= 1/2; p is the Taylor polynomial of e^r. No branches, nor comparisons of floats, which
/// may trap: loops vectorise.
[[nodiscard]] constexpr float exp_nonpositive(float x) {
  constexpr float log2e = 1.44269504F;
  constexpr float ln2_high = 0.693359375F;
  constexpr float ln2_low = -2.12194440e-4F;
  constexpr float round_magic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const auto magnitude = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU);
  const std::uint32_t mask = magnitude < std::bit_cast<std::int32_t>(28.0F) ? ~0U : 0U;
  const float shifted = x * log2e + round_magic;
  const float n = shifted - round_magic;
  const float r = (x - n * ln2_high) - n * ln2_low;
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  // The low bits of `shifted` are n.
  const auto exponent = (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(round_magic) + 127U) << 23U;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p * std::bit_cast<float>(exponent)) & mask);
}

/// A weight in units of 2^-40, truncated. Exact but for that: a product with a power of two is not rounded. 2^18 weights sum up
/// to 2^58 at most.
[[nodiscard]] constexpr std::uint64_t fixed_point(float weight) { return static_cast<std::uint64_t>(weight * 0x1p40F); }

/// Of a token, beside 2^40 for the one of the largest logit.
[[nodiscard]] constexpr std::uint64_t token_weight(float logit, float largest, float inverse_temperature) {
  return fixed_point(exp_nonpositive((logit - largest) * inverse_temperature));
}

/// The weight that top_p keeps at least, of the total that it is given: what is kept is the fewest of the largest logits whose
/// weights sum to it.
[[nodiscard]] constexpr std::uint64_t kept_mass(std::uint64_t total, float top_p) {
  const auto mass = static_cast<std::uint64_t>(static_cast<double>(total) * static_cast<double>(top_p));
  return mass > 0 ? mass : 1;
}

/// The draw: the token is the first, in order of ids, with which the sum of the kept weights exceeds this.
[[nodiscard]] constexpr std::uint64_t drawn_mass(std::uint64_t total, double u) {
  const auto mass = static_cast<std::uint64_t>(static_cast<double>(total) * u);
  return mass < total ? mass : total - 1;
}

}  // namespace fixpoint::kernels
