#pragma once

// How the kernels read weights. A row is read in units of eight values: four from each of two places, as the 4-bit formats
// hold them in one word. The layout in device memory is GGUF's own where its blocks are aligned; the formats whose blocks
// are no multiple of four bytes are taken apart into planes (see block_layout.cpp), a row's planes one after another.

#include <cuda_platform/platform.h>

#include <cstdint>

#include "kernels/cuda/block_layout.h"
#include "kernels/tensor.h"

namespace fixpoint::kernels::cuda {

/// Where the two halves of a unit belong in the row.
struct UnitPlace {
  std::int32_t first, second;
};

/// Eight values: w[0..3] at `first`, w[4..7] at `second`.
struct Unit {
  float w[8];
};

inline __device__ float byte_as_float(std::uint32_t word, int byte) {
  return static_cast<float>(static_cast<std::int8_t>(word >> (8 * byte)));
}
inline __device__ std::uint32_t nibble(std::uint32_t word, int byte, int high) { return (word >> (8 * byte + 4 * high)) & 15U; }
inline __device__ float load_half(const std::uint8_t* p) { return half_to_float(*reinterpret_cast<const std::uint16_t*>(p)); }

template <DType type>
struct Format;

struct PlainPlace {
  static __device__ UnitPlace place(std::int32_t unit) { return {8 * unit, 8 * unit + 4}; }
};
/// Blocks of 32: a word holds values 4 j.. in its low and 4 j + 16.. in its high nibbles.
struct NibblePlace {
  static __device__ UnitPlace place(std::int32_t unit) {
    const std::int32_t first = unit / 4 * 32 + unit % 4 * 4;
    return {first, first + 16};
  }
};

template <>
struct Format<DType::f32> : PlainPlace {
  static __device__ Unit read(const std::uint8_t* row, std::int32_t, std::int32_t unit) {
    const auto* from = reinterpret_cast<const float*>(row) + 8 * unit;
    const Floats4 a = load_floats4(from);
    const Floats4 b = load_floats4(from + 4);
    return {{a.v[0], a.v[1], a.v[2], a.v[3], b.v[0], b.v[1], b.v[2], b.v[3]}};
  }
};

template <>
struct Format<DType::f16> : PlainPlace {
  static __device__ Unit read(const std::uint8_t* row, std::int32_t, std::int32_t unit) {
    const Words4 words = load_words4(row + 16 * unit);
    Unit out;
    for (int i = 0; i < 4; ++i) {
      out.w[2 * i] = half_to_float(static_cast<std::uint16_t>(words.w[i]));
      out.w[2 * i + 1] = half_to_float(static_cast<std::uint16_t>(words.w[i] >> 16U));
    }
    return out;
  }
};

template <>
struct Format<DType::bf16> : PlainPlace {
  static __device__ Unit read(const std::uint8_t* row, std::int32_t, std::int32_t unit) {
    const Words4 words = load_words4(row + 16 * unit);
    Unit out;
    for (int i = 0; i < 4; ++i) {
      out.w[2 * i] = bfloat_to_float(static_cast<std::uint16_t>(words.w[i]));
      out.w[2 * i + 1] = bfloat_to_float(static_cast<std::uint16_t>(words.w[i] >> 16U));
    }
    return out;
  }
};

/// Planes: codes [cols], scales [cols / 32] F16.
template <>
struct Format<DType::q8_0> : PlainPlace {
  static __device__ Unit read(const std::uint8_t* row, std::int32_t cols, std::int32_t unit) {
    const float d = load_half(row + cols + unit / 4 * 2);
    Unit out;
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t word = load_word(row + 8 * unit + 4 * half);
      for (int i = 0; i < 4; ++i) out.w[4 * half + i] = d * byte_as_float(word, i);
    }
    return out;
  }
};

/// Values d * code + offset from a word of nibbles; `fifth` holds the fifth bits, from bit 0 those of the low nibbles and
/// from bit 16 those of the high ones.
inline __device__ Unit from_nibbles(std::uint32_t word, std::uint32_t fifth, float d, float offset) {
  Unit out;
  for (int high = 0; high < 2; ++high) {
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t code = nibble(word, i, high) | ((fifth >> (16 * high + i)) & 1U) << 4U;
      out.w[4 * high + i] = fused(d, static_cast<float>(code), offset);
    }
  }
  return out;
}

/// Planes: nibbles [cols / 2], scales [cols / 32] F16.
template <>
struct Format<DType::q4_0> : NibblePlace {
  static __device__ Unit read(const std::uint8_t* row, std::int32_t cols, std::int32_t unit) {
    const float d = load_half(row + cols / 2 + unit / 4 * 2);
    return from_nibbles(load_word(row + 4 * unit), 0, d, -8.0F * d);
  }
};

/// GGUF's blocks: d, m, nibbles.
template <>
struct Format<DType::q4_1> : NibblePlace {
  static __device__ Unit read(const std::uint8_t* row, std::int32_t, std::int32_t unit) {
    const std::uint8_t* block = row + unit / 4 * 20;
    return from_nibbles(load_word(block + 4 + unit % 4 * 4), 0, load_half(block), load_half(block + 2));
  }
};

/// Planes: nibbles [cols / 2], fifth bits [cols / 32] words, scales [cols / 32] F16.
template <>
struct Format<DType::q5_0> : NibblePlace {
  static __device__ Unit read(const std::uint8_t* row, std::int32_t cols, std::int32_t unit) {
    const std::uint32_t fifth = load_word(row + cols / 2 + unit / 4 * 4);
    const float d = load_half(row + cols / 2 + cols / 8 + unit / 4 * 2);
    return from_nibbles(load_word(row + 4 * unit), fifth >> (unit % 4 * 4), d, -16.0F * d);
  }
};

/// GGUF's blocks: d, m, fifth bits, nibbles.
template <>
struct Format<DType::q5_1> : NibblePlace {
  static __device__ Unit read(const std::uint8_t* row, std::int32_t, std::int32_t unit) {
    const std::uint8_t* block = row + unit / 4 * 24;
    return from_nibbles(load_word(block + 8 + unit % 4 * 4), load_word(block + 4) >> (unit % 4 * 4), load_half(block), load_half(block + 2));
  }
};

/// Q4_K and Q5_K, GGUF's blocks of 256: d, dmin, 12 bytes of scales, (fifth bits,) nibbles. A run of 32 bytes holds
/// sub-block 2 i in its low nibbles and sub-block 2 i + 1 in its high ones.
struct SuperBlockPlace {
  static __device__ UnitPlace place(std::int32_t unit) {
    const std::int32_t first = unit / 32 * 256 + unit % 32 / 8 * 64 + unit % 8 * 4;
    return {first, first + 32};
  }
};

struct ScaleAndMinimum {
  float scale, minimum;
};
inline __device__ ScaleAndMinimum k_scale(const std::uint8_t* block, int sub) {
  const std::uint8_t* s = block + 4;
  const int scale = sub < 4 ? s[sub] & 63 : (s[sub + 4] & 15) | (s[sub - 4] >> 6) << 4;
  const int minimum = sub < 4 ? s[sub + 4] & 63 : s[sub + 4] >> 4 | (s[sub] >> 6) << 4;
  return {load_half(block) * static_cast<float>(scale), load_half(block + 2) * static_cast<float>(minimum)};
}

template <bool fifth_bits>
inline __device__ Unit read_k(const std::uint8_t* block, int word) {
  const std::uint32_t codes = load_word(block + (fifth_bits ? 48 : 16) + 4 * word);
  const std::uint32_t fifth = fifth_bits ? load_word(block + 16 + word % 8 * 4) : 0;
  Unit out;
  for (int high = 0; high < 2; ++high) {
    const int sub = word / 8 * 2 + high;
    const ScaleAndMinimum s = k_scale(block, sub);
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t code = nibble(codes, i, high) | ((fifth >> (8 * i + sub)) & 1U) << 4U;
      out.w[4 * high + i] = fused(s.scale, static_cast<float>(code), -s.minimum);
    }
  }
  return out;
}

template <>
struct Format<DType::q4_k> : SuperBlockPlace {
  static __device__ Unit read(const std::uint8_t* row, std::int32_t, std::int32_t unit) {
    return read_k<false>(row + unit / 32 * 144, unit % 32);
  }
};
template <>
struct Format<DType::q5_k> : SuperBlockPlace {
  static __device__ Unit read(const std::uint8_t* row, std::int32_t, std::int32_t unit) {
    return read_k<true>(row + unit / 32 * 176, unit % 32);
  }
};

/// Planes: low nibbles [cols / 2], two high bits [cols / 4], scales [cols / 16], d [cols / 256] F16. Word j of a block's 32
/// words of low nibbles holds values of quarters j / 8 % 2 and j / 8 % 2 + 2 of half j / 16.
template <>
struct Format<DType::q6_k> {
  static __device__ UnitPlace place(std::int32_t unit) {
    const std::int32_t first = unit / 32 * 256 + unit % 32 / 16 * 128 + unit % 16 / 8 * 32 + unit % 8 * 4;
    return {first, first + 64};
  }
  static __device__ Unit read(const std::uint8_t* row, std::int32_t cols, std::int32_t unit) {
    const std::int32_t block = unit / 32;
    const std::int32_t half = unit % 32 / 16;
    const std::uint32_t low = load_word(row + 4 * unit);
    const std::uint32_t high_bits = load_word(row + cols / 2 + block * 64 + half * 32 + unit % 8 * 4);
    const std::uint8_t* scales = row + cols / 2 + cols / 4 + block * 16;
    const float d = load_half(row + cols / 2 + cols / 4 + cols / 16 + block * 2);
    const UnitPlace at = place(unit);
    Unit out;
    for (int high = 0; high < 2; ++high) {
      const std::int32_t in_block = (high != 0 ? at.second : at.first) % 256;
      const float scale = d * static_cast<float>(static_cast<std::int8_t>(scales[in_block / 16]));
      const int quarter = in_block % 128 / 32;
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t code = nibble(low, i, high) | ((high_bits >> (8 * i + 2 * quarter)) & 3U) << 4U;
        out.w[4 * high + i] = scale * (static_cast<float>(code) - 32.0F);
      }
    }
    return out;
  }
};

}  // namespace fixpoint::kernels::cuda
