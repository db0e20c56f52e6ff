#pragma once

#include <bit>
#include <cstdint>

namespace fixpoint::kernels {

/// OCP E4M3 (FN): a sign, four bits of exponent, three of fraction; no infinities, 0x7f and 0xff are NaN.
inline constexpr float kLargestE4m3 = 448.0F;

[[nodiscard]] inline float e4m3_to_f32(std::uint8_t code) {
  const std::uint32_t sign = (code & 0x80U) << 24U;
  const std::uint32_t magnitude = code & 0x7fU;
  if (magnitude == 0x7fU) return std::bit_cast<float>(sign | 0x7fc00000U);
  if (magnitude < 8U) return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-9F));
  return std::bit_cast<float>(sign | ((magnitude << 20U) + 0x3c000000U));
}

/// To nearest even; what is beyond 448, infinities included, becomes 448. Not for a NaN.
[[nodiscard]] inline std::uint8_t f32_to_e4m3(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t sign = (bits >> 24U) & 0x80U;
  const float magnitude = std::bit_cast<float>(bits & 0x7fffffffU);
  const float bounded = magnitude < kLargestE4m3 ? magnitude : kLargestE4m3;
  const std::uint32_t b = std::bit_cast<std::uint32_t>(bounded);
  // Below the smallest normal, 2^-6, adding 2^14 leaves a count of 2^-9 in the low bits.
  const std::uint32_t small = std::bit_cast<std::uint32_t>(bounded + 0x1p14F) - 0x46800000U;
  const std::uint32_t normal = (b + 0x7ffffU + ((b >> 20U) & 1U) - 0x3c000000U) >> 20U;
  return static_cast<std::uint8_t>(sign | (bounded < 0x1p-6F ? small : normal));
}

}  // namespace fixpoint::kernels
