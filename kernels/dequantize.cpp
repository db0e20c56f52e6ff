#include <cstring>
#include <stdexcept>

#include "kernels/half.h"
#include "kernels/quant.h"

namespace fixpoint::kernels {
namespace {

using Bytes = const std::uint8_t*;

float half_at(Bytes p) {
  std::uint16_t h = 0;
  std::memcpy(&h, p, sizeof h);
  return f16_to_f32(h);
}

std::uint32_t u32_at(Bytes p) {
  std::uint32_t v = 0;
  std::memcpy(&v, p, sizeof v);
  return v;
}

void dequantize_q8_0(Bytes b, float* out) {
  const float d = half_at(b);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(static_cast<std::int8_t>(b[2 + i]));
  }
}

// Q4_0, Q4_1, Q5_0, Q5_1: byte j holds value j in its low and value j + 16 in its high nibble; the fifth bits of all 32
// values stand in one word.
void nibble_block(Bytes nibbles, std::uint32_t fifth_bits, float d, float offset, float* out) {
  for (int j = 0; j < 16; ++j) {
    const std::uint32_t low = (nibbles[j] & 15U) | ((fifth_bits >> j) & 1U) << 4U;
    const std::uint32_t high = (nibbles[j] >> 4U) | ((fifth_bits >> (j + 16)) & 1U) << 4U;
    out[j] = d * static_cast<float>(low) + offset;
    out[j + 16] = d * static_cast<float>(high) + offset;
  }
}

void dequantize_q4_0(Bytes b, float* out) {
  const float d = half_at(b);
  nibble_block(b + 2, 0, d, -8.0F * d, out);
}

void dequantize_q4_1(Bytes b, float* out) { nibble_block(b + 4, 0, half_at(b), half_at(b + 2), out); }

void dequantize_q5_0(Bytes b, float* out) {
  const float d = half_at(b);
  nibble_block(b + 6, u32_at(b + 2), d, -16.0F * d, out);
}

void dequantize_q5_1(Bytes b, float* out) { nibble_block(b + 8, u32_at(b + 4), half_at(b), half_at(b + 2), out); }

// Q4_K and Q5_K: d, dmin, packed scales, (fifth bits,) nibbles; a run of 32 bytes holds two sub-blocks.
void block_k(Bytes b, Bytes fifth_bits, Bytes nibbles, float* out) {
  const float d = half_at(b);
  const float dmin = half_at(b + 2);
  std::uint8_t scales[8];
  std::uint8_t minima[8];
  unpack_k_scales(b + 4, scales, minima);
  for (unsigned sub = 0; sub < 8; ++sub) {
    const float scale = d * static_cast<float>(scales[sub]);
    const float minimum = dmin * static_cast<float>(minima[sub]);
    for (unsigned i = 0; i < 32; ++i) {
      const std::uint8_t byte = nibbles[sub / 2 * 32 + i];
      std::uint32_t code = sub % 2 == 0 ? byte & 15U : byte >> 4U;
      if (fifth_bits != nullptr) {
        code |= ((fifth_bits[i] >> sub) & 1U) << 4U;
      }
      out[sub * 32 + i] = scale * static_cast<float>(code) - minimum;
    }
  }
}

void dequantize_q4_k(Bytes b, float* out) { block_k(b, nullptr, b + 16, out); }
void dequantize_q5_k(Bytes b, float* out) { block_k(b, b + 16, b + 48, out); }

void dequantize_q6_k(Bytes b, float* out) {
  const float d = half_at(b + 208);
  for (unsigned i = 0; i < 256; ++i) {
    const unsigned half = i / 128;
    const unsigned quarter = i % 128 / 32;
    const unsigned l = i % 32;
    const std::uint8_t low_byte = b[half * 64 + quarter % 2 * 32 + l];
    const std::uint32_t low = quarter < 2 ? low_byte & 15U : low_byte >> 4U;
    const std::uint32_t high = (b[128 + half * 32 + l] >> (2 * quarter)) & 3U;
    const auto scale = static_cast<std::int8_t>(b[192 + i / 16]);
    out[i] = d * static_cast<float>(scale) * (static_cast<float>(low | high << 4U) - 32.0F);
  }
}

template <class Block>
void by_block(DType type, Bytes from, float* to, std::int64_t n, Block block) {
  const DTypeTraits& t = traits(type);
  if (n % t.block_elements != 0) {
    throw std::invalid_argument("dequantize_row: not a whole number of blocks");
  }
  for (std::int64_t i = 0; i < n; i += t.block_elements, from += t.block_bytes) {
    block(from, to + i);
  }
}

}  // namespace

void unpack_k_scales(const std::uint8_t* packed, std::uint8_t* scales, std::uint8_t* minima) {
  for (int j = 0; j < 4; ++j) {
    scales[j] = packed[j] & 63U;
    minima[j] = packed[j + 4] & 63U;
    scales[j + 4] = static_cast<std::uint8_t>((packed[j + 8] & 15U) | (packed[j] >> 6U) << 4U);
    minima[j + 4] = static_cast<std::uint8_t>((packed[j + 8] >> 4U) | (packed[j + 4] >> 6U) << 4U);
  }
}

void dequantize_row(DType type, const std::byte* from, float* to, std::int64_t n) {
  const auto* bytes = reinterpret_cast<Bytes>(from);
  switch (type) {
    case DType::f32: std::memcpy(to, bytes, static_cast<std::size_t>(n) * sizeof(float)); return;
    case DType::f16: return by_block(type, bytes, to, n, [](Bytes b, float* out) { *out = half_at(b); });
    case DType::bf16:
      return by_block(type, bytes, to, n, [](Bytes b, float* out) {
        *out = bf16_to_f32(static_cast<std::uint16_t>(b[0] | b[1] << 8U));
      });
    case DType::q8_0: return by_block(type, bytes, to, n, dequantize_q8_0);
    case DType::q4_0: return by_block(type, bytes, to, n, dequantize_q4_0);
    case DType::q4_1: return by_block(type, bytes, to, n, dequantize_q4_1);
    case DType::q5_0: return by_block(type, bytes, to, n, dequantize_q5_0);
    case DType::q5_1: return by_block(type, bytes, to, n, dequantize_q5_1);
    case DType::q4_k: return by_block(type, bytes, to, n, dequantize_q4_k);
    case DType::q5_k: return by_block(type, bytes, to, n, dequantize_q5_k);
    case DType::q6_k: return by_block(type, bytes, to, n, dequantize_q6_k);
  }
  throw std::invalid_argument("dequantize_row: unknown type");
}

}  // namespace fixpoint::kernels
