#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "kernels/half.h"
#include "kernels/quant.h"

namespace fixpoint::kernels {
namespace {

using OutBytes = std::uint8_t*;

void put_half(OutBytes p, float f) {
  const std::uint16_t h = f32_to_f16(f);
  std::memcpy(p, &h, sizeof h);
}

float rounded_to_half(float f) { return f16_to_f32(f32_to_f16(f)); }
float inverse(float f) { return f == 0.0F ? 0.0F : 1.0F / f; }

std::uint8_t code(float value, int highest) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(std::floor(value + 0.5F)), 0, highest));
}

// The value of largest magnitude, with its sign: it gets the end of the range that has one code more.
float peak(const float* x, int n) {
  float found = 0.0F;
  for (int i = 0; i < n; ++i) {
    if (std::fabs(x[i]) > std::fabs(found)) {
      found = x[i];
    }
  }
  return found;
}

void quantize_q8_0(const float* x, OutBytes b) {
  const float d = std::fabs(peak(x, 32)) / 127.0F;
  put_half(b, d);
  for (int i = 0; i < 32; ++i) {
    b[2 + i] = static_cast<std::uint8_t>(static_cast<std::int8_t>(std::round(x[i] * inverse(d))));
  }
}

// 32 codes of 4 or 5 bits; `fifth_bits` null for 4.
void put_codes(const std::uint8_t* codes, OutBytes nibbles, OutBytes fifth_bits) {
  std::uint32_t fifth = 0;
  for (unsigned j = 0; j < 16; ++j) {
    nibbles[j] = static_cast<std::uint8_t>((codes[j] & 15U) | (codes[j + 16] & 15U) << 4U);
    fifth |= static_cast<std::uint32_t>(codes[j] >> 4U) << j | static_cast<std::uint32_t>(codes[j + 16] >> 4U) << (j + 16);
  }
  if (fifth_bits != nullptr) {
    std::memcpy(fifth_bits, &fifth, sizeof fifth);
  }
}

void symmetric_block(const float* x, OutBytes b, int middle, OutBytes nibbles, OutBytes fifth_bits) {
  const float d = peak(x, 32) / static_cast<float>(-middle);
  std::uint8_t codes[32];
  for (int i = 0; i < 32; ++i) {
    codes[i] = code(x[i] * inverse(d) + static_cast<float>(middle), 2 * middle - 1);
  }
  put_half(b, d);
  put_codes(codes, nibbles, fifth_bits);
}

void affine_block(const float* x, OutBytes b, int highest, OutBytes nibbles, OutBytes fifth_bits) {
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float d = (*high - *low) / static_cast<float>(highest);
  std::uint8_t codes[32];
  for (int i = 0; i < 32; ++i) {
    codes[i] = code((x[i] - *low) * inverse(d), highest);
  }
  put_half(b, d);
  put_half(b + 2, *low);
  put_codes(codes, nibbles, fifth_bits);
}

void quantize_q4_0(const float* x, OutBytes b) { symmetric_block(x, b, 8, b + 2, nullptr); }
void quantize_q4_1(const float* x, OutBytes b) { affine_block(x, b, 15, b + 4, nullptr); }
void quantize_q5_0(const float* x, OutBytes b) { symmetric_block(x, b, 16, b + 6, b + 2); }
void quantize_q5_1(const float* x, OutBytes b) { affine_block(x, b, 31, b + 8, b + 4); }

void pack_k_scales(const std::uint8_t* scales, const std::uint8_t* minima, OutBytes packed) {
  for (int j = 0; j < 4; ++j) {
    packed[j] = static_cast<std::uint8_t>(scales[j] | (scales[j + 4] >> 4U) << 6U);
    packed[j + 4] = static_cast<std::uint8_t>(minima[j] | (minima[j + 4] >> 4U) << 6U);
    packed[j + 8] = static_cast<std::uint8_t>((scales[j + 4] & 15U) | (minima[j + 4] & 15U) << 4U);
  }
}

// Q4_K and Q5_K (`fifth_bits` not null).
void block_k(const float* x, OutBytes b, int highest, OutBytes nibbles, OutBytes fifth_bits) {
  float steps[8];
  float lows[8];
  for (int sub = 0; sub < 8; ++sub) {
    const auto [low, high] = std::minmax_element(x + sub * 32, x + sub * 32 + 32);
    lows[sub] = std::max(0.0F, -*low);
    steps[sub] = (std::max(0.0F, *high) + lows[sub]) / static_cast<float>(highest);
  }
  const float d = rounded_to_half(*std::max_element(steps, steps + 8) / 63.0F);
  const float dmin = rounded_to_half(*std::max_element(lows, lows + 8) / 63.0F);
  std::uint8_t scales[8];
  std::uint8_t minima[8];
  std::memset(nibbles, 0, 128);
  for (unsigned sub = 0; sub < 8; ++sub) {
    scales[sub] = code(steps[sub] * inverse(d), 63);
    minima[sub] = code(lows[sub] * inverse(dmin), 63);
    const float step = inverse(d * static_cast<float>(scales[sub]));
    const float low = dmin * static_cast<float>(minima[sub]);
    for (unsigned i = 0; i < 32; ++i) {
      const unsigned c = code((x[sub * 32 + i] + low) * step, highest);
      OutBytes nibble = nibbles + sub / 2 * 32 + i;
      *nibble = static_cast<std::uint8_t>(*nibble | (c & 15U) << (sub % 2 * 4));
      if (fifth_bits != nullptr) {
        fifth_bits[i] = static_cast<std::uint8_t>(fifth_bits[i] | (c >> 4U) << sub);
      }
    }
  }
  put_half(b, d);
  put_half(b + 2, dmin);
  pack_k_scales(scales, minima, b + 4);
}

void quantize_q4_k(const float* x, OutBytes b) { block_k(x, b, 15, b + 16, nullptr); }

void quantize_q5_k(const float* x, OutBytes b) {
  std::memset(b + 16, 0, 32);
  block_k(x, b, 31, b + 48, b + 16);
}

void quantize_q6_k(const float* x, OutBytes b) {
  float steps[16];
  for (int sub = 0; sub < 16; ++sub) {
    steps[sub] = peak(x + sub * 16, 16) / -32.0F;
  }
  const float d = rounded_to_half(peak(steps, 16) / -128.0F);
  std::memset(b, 0, 192);
  for (unsigned i = 0; i < 256; ++i) {
    const float ratio = steps[i / 16] * inverse(d);
    const auto scale = static_cast<std::int8_t>(std::clamp(static_cast<int>(std::round(ratio)), -128, 127));
    const unsigned c = code(x[i] * inverse(d * static_cast<float>(scale)) + 32.0F, 63);
    const unsigned half = i / 128;
    const unsigned quarter = i % 128 / 32;
    OutBytes low = b + half * 64 + quarter % 2 * 32 + i % 32;
    OutBytes high = b + 128 + half * 32 + i % 32;
    *low = static_cast<std::uint8_t>(*low | (c & 15U) << (quarter / 2 * 4));
    *high = static_cast<std::uint8_t>(*high | (c >> 4U) << (2 * quarter));
    b[192 + i / 16] = static_cast<std::uint8_t>(scale);
  }
  put_half(b + 208, d);
}

template <class Block>
void by_block(DType type, const float* from, OutBytes to, std::int64_t n, Block block) {
  const DTypeTraits& t = traits(type);
  if (n % t.block_elements != 0) {
    throw std::invalid_argument("quantize_row: not a whole number of blocks");
  }
  for (std::int64_t i = 0; i < n; i += t.block_elements, to += t.block_bytes) {
    block(from + i, to);
  }
}

void put_bf16(const float* x, OutBytes b) {
  const std::uint16_t v = f32_to_bf16(*x);
  std::memcpy(b, &v, sizeof v);
}

}  // namespace

void quantize_row(DType type, const float* from, std::byte* to, std::int64_t n) {
  auto* bytes = reinterpret_cast<OutBytes>(to);
  switch (type) {
    case DType::f32: std::memcpy(bytes, from, static_cast<std::size_t>(n) * sizeof(float)); return;
    case DType::f16: return by_block(type, from, bytes, n, [](const float* x, OutBytes b) { put_half(b, *x); });
    case DType::bf16: return by_block(type, from, bytes, n, put_bf16);
    case DType::q8_0: return by_block(type, from, bytes, n, quantize_q8_0);
    case DType::q4_0: return by_block(type, from, bytes, n, quantize_q4_0);
    case DType::q4_1: return by_block(type, from, bytes, n, quantize_q4_1);
    case DType::q5_0: return by_block(type, from, bytes, n, quantize_q5_0);
    case DType::q5_1: return by_block(type, from, bytes, n, quantize_q5_1);
    case DType::q4_k: return by_block(type, from, bytes, n, quantize_q4_k);
    case DType::q5_k: return by_block(type, from, bytes, n, quantize_q5_k);
    case DType::q6_k: return by_block(type, from, bytes, n, quantize_q6_k);
  }
  throw std::invalid_argument("quantize_row: unknown type");
}

}  // namespace fixpoint::kernels
