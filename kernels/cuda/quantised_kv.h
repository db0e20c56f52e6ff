#pragma once

#include <cuda_platform/platform.h>

#include "kernels/cuda/kv_formats.h"
#include "kernels/cuda/reduce.h"

namespace fixpoint::kernels::cuda {

// The codes and scales of kernels/kv_row.cpp, to the bit. A warp quantises a row: lane i has elements 8 i.. + 7, zeros where the
// row is shorter.

inline constexpr float kLargestHalf = 65504.0F;

/// A NaN becomes zero, an infinity about the largest float.
inline __device__ float finite(float x) {
  if (!(x == x)) return 0.0F;
  return fminf(fmaxf(x, -3.4e38F), 3.4e38F);
}
inline __device__ float bounded(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
inline __device__ std::uint16_t scale_of(float width) { return float_to_half(fminf(width, kLargestHalf)); }
inline __device__ float inverse(std::uint16_t scale) {
  const float s = half_to_float(scale);
  return s > 0.0F ? 1.0F / s : 0.0F;
}
/// To the nearest even of a number below 2^22.
inline __device__ float nearest(float x) { return (x + 12582912.0F) - 12582912.0F; }

inline __device__ float warp_peak(const float (&values)[8]) {
  float peak = 0.0F;
#pragma unroll
  for (int i = 0; i < 8; ++i) peak = fmaxf(peak, fabsf(values[i]));
  return warp_max(peak);
}

/// OCP E4M3 (FN), rounded to the nearest even, bounded by 448; not for a NaN.
inline __device__ std::uint32_t float_to_e4m3(float value) {
  const std::uint32_t sign = float_bits(value) >> 24U & 0x80U;
  const float magnitude = fminf(fabsf(value), 448.0F);
  const std::uint32_t bits = float_bits(magnitude);
  // Below the smallest normal, 2^-6, adding 2^14 leaves a count of 2^-9 in the low bits.
  const std::uint32_t small = float_bits(magnitude + 0x1p14F) - 0x46800000U;
  const std::uint32_t normal = (bits + 0x7ffffU + (bits >> 20U & 1U) - 0x3c000000U) >> 20U;
  return sign | (magnitude < 0x1p-6F ? small : normal);
}
/// The same bits are an F16 of a 256th of the value, its subnormal numbers included.
inline __device__ float e4m3_to_float(std::uint32_t code) {
  return half_to_float(static_cast<std::uint16_t>((code & 0x80U) << 8U | (code & 0x7fU) << 7U)) * 256.0F;
}

/// A byte an element and a scale a row.
template <class Code>
struct ByteFormat {
  static __device__ Eight load(const KvGeometry& kv, std::int64_t row, int element) {
    const std::byte* codes = kv.data + row * kv.row_bytes + element;
    const std::uint32_t words[2] = {load_word(codes), load_word(codes + 4)};
    const float scale = half_to_float(kv.scales[row]);
    Eight out;
#pragma unroll
    for (int i = 0; i < 8; ++i) out.v[i] = scale * Code::value(words[i / 4] >> (8 * (i % 4)) & 0xffU);
    return out;
  }

  static __device__ void store(const float (&values)[8], const KvGeometry& kv, std::int64_t row, int element) {
    const std::uint16_t scale = scale_of(warp_peak(values) / Code::kLargest);
    if (element >= kv.padded_dim) return;
    const float factor = inverse(scale);
    std::uint32_t words[2] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) words[i / 4] |= Code::code(values[i] * factor) << (8 * (i % 4));
    auto* to = reinterpret_cast<std::uint32_t*>(kv.data + row * kv.row_bytes + element);
    to[0] = words[0];
    to[1] = words[1];
    if (element == 0) kv.scales[row] = scale;
  }
};

struct Int8Code {
  static constexpr float kLargest = 127.0F;
  static __device__ float value(std::uint32_t code) { return static_cast<float>(static_cast<std::int8_t>(code)); }
  static __device__ std::uint32_t code(float x) { return static_cast<std::uint32_t>(static_cast<std::int32_t>(nearest(bounded(x, -127.0F, 127.0F)))) & 0xffU; }
};
struct E4m3Code {
  static constexpr float kLargest = 448.0F;
  static __device__ float value(std::uint32_t code) { return e4m3_to_float(code); }
  static __device__ std::uint32_t code(float x) { return float_to_e4m3(x); }
};

template <>
struct KvFormat<KvType::int8> : ByteFormat<Int8Code> {};
template <>
struct KvFormat<KvType::fp8_e4m3> : ByteFormat<E4m3Code> {};

/// Four bits an element; a scale and an offset for each 32, which are four lanes' elements.
template <>
struct KvFormat<KvType::int4> {
  static __device__ Eight load(const KvGeometry& kv, std::int64_t row, int element) {
    const std::uint32_t codes = load_word(kv.data + row * kv.row_bytes + element / 2);
    const std::uint32_t group = load_word(kv.scales + row * kv.row_scales + element / 32 * 2);
    const float scale = half_to_float(static_cast<std::uint16_t>(group));
    const float offset = half_to_float(static_cast<std::uint16_t>(group >> 16U));
    Eight out;
#pragma unroll
    for (int i = 0; i < 8; ++i) out.v[i] = offset + scale * static_cast<float>(codes >> (4 * i) & 15U);
    return out;
  }

  static __device__ void store(const float (&values)[8], const KvGeometry& kv, std::int64_t row, int element) {
    float low = INFINITY;
    float high = -INFINITY;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const float x = bounded(values[i], -kLargestHalf, kLargestHalf);
      if (element + i < kv.dim) {
        low = fminf(low, x);
        high = fmaxf(high, x);
      }
    }
    for (int mask = 1; mask < 4; mask *= 2) {
      low = fminf(low, __shfl_xor_sync(kAllLanes, low, mask));
      high = fmaxf(high, __shfl_xor_sync(kAllLanes, high, mask));
    }
    if (element >= kv.padded_dim) return;
    const std::uint16_t scale = scale_of((high - low) / 15.0F);
    const std::uint16_t offset = float_to_half(low);
    const float factor = inverse(scale);
    const float origin = half_to_float(offset);
    std::uint32_t codes = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) codes |= static_cast<std::uint32_t>(nearest(bounded((values[i] - origin) * factor, 0.0F, 15.0F))) << (4 * i);
    *reinterpret_cast<std::uint32_t*>(kv.data + row * kv.row_bytes + element / 2) = codes;
    if (element % 32 == 0) {
      kv.scales[row * kv.row_scales + element / 32 * 2] = scale;
      kv.scales[row * kv.row_scales + element / 32 * 2 + 1] = offset;
    }
  }
};

}  // namespace fixpoint::kernels::cuda
