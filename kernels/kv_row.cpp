#include "kernels/kv_row.h"

#include <algorithm>
#include <cmath>

#include "kernels/float8.h"
#include "kernels/half.h"

namespace fixpoint::kernels {
namespace {

constexpr float kLargestF16 = 65504.0F;

// A NaN becomes zero, an infinity the largest float.
float finite(float x) { return x == x ? std::clamp(x, -3.4e38F, 3.4e38F) : 0.0F; }

std::uint16_t scale_of(float width) { return f32_to_f16(std::min(width, kLargestF16)); }

float inverse(std::uint16_t scale) {
  const float s = f16_to_f32(scale);
  return s > 0.0F ? 1.0F / s : 0.0F;
}

// To the nearest even of a number below 2^22.
float nearest(float x) {
  constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: the sum has no fraction bits
  return (x + kMagic) - kMagic;
}

float bounded(float x, float low, float high) { return std::min(std::max(x, low), high); }

float peak_of(const float* from, std::int64_t n) {
  float peak = 0.0F;
  for (std::int64_t i = 0; i < n; ++i) peak = std::max(peak, std::abs(finite(from[i])));
  return peak;
}

void to_int8(const float* from, std::int64_t n, std::uint8_t* codes, std::uint16_t* scale) {
  *scale = scale_of(peak_of(from, n) / 127.0F);
  const float inv = inverse(*scale);
  for (std::int64_t i = 0; i < n; ++i) {
    const float x = bounded(finite(from[i]) * inv, -127.0F, 127.0F);
    codes[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(nearest(x)));
  }
}

void to_fp8(const float* from, std::int64_t n, std::uint8_t* codes, std::uint16_t* scale) {
  *scale = scale_of(peak_of(from, n) / kLargestE4m3);
  const float inv = inverse(*scale);
  for (std::int64_t i = 0; i < n; ++i) codes[i] = f32_to_e4m3(finite(from[i]) * inv);
}

// One group: scales[0] is its scale, scales[1] its offset.
void to_int4(const float* from, std::int64_t n, std::uint8_t* codes, std::uint16_t* scales) {
  float low = bounded(finite(from[0]), -kLargestF16, kLargestF16);
  float high = low;
  for (std::int64_t i = 1; i < n; ++i) {
    const float x = bounded(finite(from[i]), -kLargestF16, kLargestF16);
    low = std::min(low, x);
    high = std::max(high, x);
  }
  scales[0] = scale_of((high - low) / 15.0F);
  scales[1] = f32_to_f16(low);
  const float inv = inverse(scales[0]);
  const float offset = f16_to_f32(scales[1]);
  for (std::int64_t i = 0; i < n; ++i) {
    codes[i] = static_cast<std::uint8_t>(nearest(bounded((finite(from[i]) - offset) * inv, 0.0F, 15.0F)));
  }
}

}  // namespace

void quantize_kv(KvType type, const float* from, std::int64_t n, std::uint8_t* codes, std::uint16_t* scales) {
  if (type == KvType::int8) return to_int8(from, n, codes, scales);
  if (type == KvType::fp8_e4m3) return to_fp8(from, n, codes, scales);
  for (std::int64_t i = 0; i < n; i += kKvGroup, scales += 2) {
    to_int4(from + i, std::min(kKvGroup, n - i), codes + i, scales);
  }
}

void dequantize_kv(KvType type, const std::uint8_t* codes, const std::uint16_t* scales, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (type == KvType::int4) {
      const std::uint16_t* group = scales + 2 * (i / kKvGroup);
      to[i] = f16_to_f32(group[1]) + f16_to_f32(group[0]) * static_cast<float>(codes[i]);
    } else {
      const float code = type == KvType::int8 ? static_cast<float>(static_cast<std::int8_t>(codes[i])) : e4m3_to_f32(codes[i]);
      to[i] = f16_to_f32(scales[0]) * code;
    }
  }
}

}  // namespace fixpoint::kernels
