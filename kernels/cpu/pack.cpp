#include "kernels/cpu/pack.h"

#include <cstring>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/panel_layout.h"
#include "kernels/half.h"
#include "kernels/quant.h"

namespace fixpoint::kernels::cpu {
namespace {

using Bytes = const std::uint8_t*;

std::uint32_t word_at(const void* p) {
  std::uint32_t w = 0;
  std::memcpy(&w, p, sizeof w);
  return w;
}

void put_word(void* p, std::uint32_t w) { std::memcpy(p, &w, sizeof w); }

// The 32 codes of block `sub` of a file block (sub is 0 but for K-quants), one a byte.
struct Codes {
  std::uint8_t value[32];
};

void nibbles_to_codes(Bytes nibbles, std::uint32_t fifth_bits, Codes& c) {
  for (unsigned j = 0; j < 16; ++j) {
    c.value[j] = static_cast<std::uint8_t>((nibbles[j] & 15U) | ((fifth_bits >> j) & 1U) << 4U);
    c.value[j + 16] = static_cast<std::uint8_t>(nibbles[j] >> 4U | ((fifth_bits >> (j + 16)) & 1U) << 4U);
  }
}

void k_codes(Bytes nibbles, Bytes fifth_bits, unsigned sub, Codes& c) {
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned byte = nibbles[sub / 2 * 32 + i];
    const unsigned low = (byte >> (sub % 2 * 4)) & 15U;
    const unsigned high = fifth_bits != nullptr ? ((fifth_bits[i] >> sub) & 1U) << 4U : 0U;
    c.value[i] = static_cast<std::uint8_t>(low | high);
  }
}

void q6_codes(Bytes b, unsigned sub, Codes& c) {
  const unsigned half = sub / 4;
  const unsigned quarter = sub % 4;
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned low = (b[half * 64 + quarter % 2 * 32 + i] >> (quarter / 2 * 4)) & 15U;
    const unsigned high = (b[128 + half * 32 + i] >> (2 * quarter)) & 3U;
    c.value[i] = static_cast<std::uint8_t>(low | high << 4U);
  }
}

void read_codes(DType type, Bytes block, unsigned sub, Codes& c) {
  switch (type) {
    case DType::q8_0:
      for (int i = 0; i < 32; ++i) c.value[i] = block[2 + i] ^ 0x80U;
      return;
    case DType::q4_0: return nibbles_to_codes(block + 2, 0, c);
    case DType::q4_1: return nibbles_to_codes(block + 4, 0, c);
    case DType::q5_0: return nibbles_to_codes(block + 6, word_at(block + 2), c);
    case DType::q5_1: return nibbles_to_codes(block + 8, word_at(block + 4), c);
    case DType::q4_k: return k_codes(block + 16, nullptr, sub, c);
    case DType::q5_k: return k_codes(block + 48, block + 16, sub, c);
    case DType::q6_k: return q6_codes(block, sub, c);
    default: return;
  }
}

// Codes above the nibble: how many bits, for the formats that have some.
int high_bits(DType type) {
  switch (type) {
    case DType::q5_0:
    case DType::q5_1:
    case DType::q5_k: return 1;
    case DType::q6_k: return 2;
    default: return 0;
  }
}

// Four codes at a time: a group's four columns are neighbours in the panel.
void put_codes(DType type, const Codes& c, int lane, std::byte* to) {
  std::byte* at = to + 4 * lane;
  if (type == DType::q8_0) {
    for (int g = 0; g < 8; ++g) put_word(at + 64 * g, word_at(c.value + 4 * g));
    return;
  }
  std::uint32_t high[2] = {};
  const int bits = high_bits(type);
  for (int g = 0; g < 8; ++g) {
    const std::uint32_t above = (word_at(c.value + 4 * g) >> 4U) & 0x03030303U;
    high[bits == 2 ? g / 4 : 0] |= above << (bits == 2 ? 2 * (g % 4) : g);
  }
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t low = word_at(c.value + 8 * i) & 0x0f0f0f0fU;
    put_word(at + 64 * i, low | (word_at(c.value + 8 * i + 4) & 0x0f0f0f0fU) << 4U);
  }
  for (int i = 0; i < bits; ++i) put_word(at + 256 + 64 * i, high[i]);
}

void get_codes(DType type, const std::byte* from, int lane, Codes& c) {
  const std::byte* at = from + 4 * lane;
  const int bits = high_bits(type);
  for (int g = 0; g < 8; ++g) {
    if (type == DType::q8_0) {
      put_word(c.value + 4 * g, word_at(at + 64 * g));
      continue;
    }
    std::uint32_t w = (word_at(at + 64 * (g / 2)) >> (g % 2 * 4)) & 0x0f0f0f0fU;
    if (bits == 1) w |= ((word_at(at + 256) >> g) & 0x01010101U) << 4U;
    if (bits == 2) w |= ((word_at(at + 256 + 64 * (g / 4)) >> (2 * (g % 4))) & 0x03030303U) << 4U;
    put_word(c.value + 4 * g, w);
  }
}

void put_scales(DType type, Bytes block, int lane, std::byte* to) {
  const auto half = [&](int offset, int from) { std::memcpy(to + offset + 2 * lane, block + from, 2); };
  switch (type) {
    case DType::q4_1:
    case DType::q5_1:
      half(0, 0);
      return half(32, 2);
    case DType::q4_k:
    case DType::q5_k: {
      half(0, 0);
      half(32, 2);
      std::uint8_t scales[8];
      std::uint8_t minima[8];
      unpack_k_scales(block + 4, scales, minima);
      for (int b = 0; b < 8; ++b) {
        to[64 + 32 * b + lane] = static_cast<std::byte>(scales[b]);
        to[80 + 32 * b + lane] = static_cast<std::byte>(minima[b]);
      }
      return;
    }
    case DType::q6_k:
      half(0, 208);
      for (int i = 0; i < 16; ++i) to[32 + 16 * i + lane] = static_cast<std::byte>(block[192 + i]);
      return;
    default: return half(0, 0);
  }
}

void pack_blocks(const PanelRows& rows, std::byte* to) {
  const PanelLayout layout = panel_layout(rows.type);
  const DTypeTraits& file = traits(rows.type);
  const std::int64_t blocks = rows.cols / layout.block_cols;
  const auto subs = static_cast<unsigned>(layout.block_cols / 32);
  std::byte* scales = to + rows.cols / 32 * layout.code_bytes;
  for (int lane = 0; lane < rows.rows; ++lane) {
    const auto* from = reinterpret_cast<Bytes>(rows.first_row + lane * row_bytes(rows.type, rows.cols));
    std::byte* codes = to;
    for (std::int64_t b = 0; b < blocks; ++b, from += file.block_bytes) {
      for (unsigned sub = 0; sub < subs; ++sub, codes += layout.code_bytes) {
        Codes c;
        read_codes(rows.type, from, sub, c);
        put_codes(rows.type, c, lane, codes);
      }
      put_scales(rows.type, from, lane, scales + b * layout.scale_bytes);
    }
  }
}

template <class Word>
struct Vector;
template <>
struct Vector<std::uint16_t> {
  using Type __attribute__((vector_size(16))) = std::uint16_t;
  static Type low(Type a, Type b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
  static Type high(Type a, Type b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
};
template <>
struct Vector<std::uint32_t> {
  using Type __attribute__((vector_size(16))) = std::uint32_t;
  static Type low(Type a, Type b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
  static Type high(Type a, Type b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
};

/// Transposes a tile of n x n words, n = 16 / sizeof(Word): each interleaving of the halves turns the bits of an element's
/// index (row bits, then column bits) by one place.
template <class Word>
void transpose_tile(const std::byte* from, std::int64_t row_bytes, Word* to) {
  using V = Vector<Word>;
  constexpr int n = 16 / sizeof(Word);
  typename V::Type rows[n];
  typename V::Type turned[n];
  for (int i = 0; i < n; ++i) std::memcpy(&rows[i], from + i * row_bytes, 16);
  for (int bits = n; bits > 1; bits /= 2) {
    for (int i = 0; i < n / 2; ++i) {
      turned[2 * i] = V::low(rows[i], rows[i + n / 2]);
      turned[2 * i + 1] = V::high(rows[i], rows[i + n / 2]);
    }
    for (int i = 0; i < n; ++i) rows[i] = turned[i];
  }
  for (int i = 0; i < n; ++i) std::memcpy(to + i * kLanes, &rows[i], 16);
}

/// Words [rows, cols] of a file to [cols, kLanes]. `cols` and the strides are in words; lanes past `lanes` are not written.
template <class Word>
void interleave_words(const std::byte* from, std::int64_t row_bytes, int lanes, std::int64_t cols, Word* to) {
  constexpr int n = 16 / sizeof(Word);
  constexpr std::int64_t kStrip = 128 / sizeof(Word);  // columns: whole cache lines of the rows that a tile reads
  const int tiled_lanes = lanes / n * n;
  const std::int64_t tiled_cols = cols / n * n;
  for (std::int64_t strip = 0; strip < tiled_cols; strip += kStrip) {
    const std::int64_t end = strip + kStrip < tiled_cols ? strip + kStrip : tiled_cols;
    for (int lane = 0; lane < tiled_lanes; lane += n) {
      const std::byte* rows = from + lane * row_bytes;
      for (std::int64_t k = strip; k < end; k += n) {
        transpose_tile(rows + k * static_cast<std::int64_t>(sizeof(Word)), row_bytes, to + k * kLanes + lane);
      }
    }
  }
  for (int lane = 0; lane < lanes; ++lane) {
    for (std::int64_t k = lane < tiled_lanes ? tiled_cols : 0; k < cols; ++k) {
      std::memcpy(to + k * kLanes + lane, from + lane * row_bytes + k * static_cast<std::int64_t>(sizeof(Word)), sizeof(Word));
    }
  }
}

template <class Word>
void pack_plain(const PanelRows& rows, std::byte* to) {
  interleave_words(rows.first_row, rows.cols * static_cast<std::int64_t>(sizeof(Word)), rows.rows, rows.cols, reinterpret_cast<Word*>(to));
}

/// Two columns side by side are a word; a last single column has its half of one.
void pack_bf16_pairs(const PanelRows& rows, std::byte* to) {
  const std::int64_t row_bytes = rows.cols * 2;
  interleave_words(rows.first_row, row_bytes, rows.rows, rows.cols / 2, reinterpret_cast<std::uint32_t*>(to));
  if (rows.cols % 2 == 0) return;
  std::byte* last = to + rows.cols / 2 * kLanes * 4;
  for (int lane = 0; lane < rows.rows; ++lane) std::memcpy(last + 4 * lane, rows.first_row + (lane + 1) * row_bytes - 2, 2);
}

float half_at(const std::byte* p) {
  std::uint16_t h = 0;
  std::memcpy(&h, p, sizeof h);
  return f16_to_f32(h);
}

// Scale and offset of a block: value = scale * code + offset; `half` counts runs of sixteen columns (Q6_K).
struct BlockScale {
  float scale;
  float offset;
};

BlockScale block_scale(DType type, const std::byte* scales, int lane, int sub, int half) {
  const float d = half_at(scales + 2 * lane);
  const auto byte = [&](int offset) { return scales[offset + lane]; };
  switch (type) {
    case DType::q8_0: return {d, -128.0F * d};
    case DType::q4_0: return {d, -8.0F * d};
    case DType::q5_0: return {d, -16.0F * d};
    case DType::q4_1:
    case DType::q5_1: return {d, half_at(scales + 32 + 2 * lane)};
    case DType::q6_k: {
      const float s = d * static_cast<float>(static_cast<std::int8_t>(byte(32 + 32 * sub + 16 * half)));
      return {s, -32.0F * s};
    }
    default: {
      const float dmin = half_at(scales + 32 + 2 * lane);
      return {d * static_cast<float>(std::to_integer<int>(byte(64 + 32 * sub))), -dmin * static_cast<float>(std::to_integer<int>(byte(80 + 32 * sub)))};
    }
  }
}

void unpack_blocks(DType type, const std::byte* panel, int lane, std::int64_t cols, float* to) {
  const PanelLayout layout = panel_layout(type);
  const std::byte* scales = panel + cols / 32 * layout.code_bytes;
  const std::int64_t subs = layout.block_cols / 32;
  for (std::int64_t b = 0; b < cols / 32; ++b) {
    Codes c;
    get_codes(type, panel + b * layout.code_bytes, lane, c);
    for (int i = 0; i < 32; ++i) {
      const BlockScale s =
          block_scale(type, scales + b / subs * layout.scale_bytes, lane, static_cast<int>(b % subs), i / 16);
      to[32 * b + i] = s.scale * static_cast<float>(c.value[i]) + s.offset;
    }
  }
}

}  // namespace

void pack_panel(const PanelRows& rows, std::byte* to) {
  switch (rows.type) {
    case DType::f32: return pack_plain<std::uint32_t>(rows, to);
    case DType::f16: return pack_plain<std::uint16_t>(rows, to);
    case DType::bf16: return rows.bf16_pairs ? pack_bf16_pairs(rows, to) : pack_plain<std::uint16_t>(rows, to);
    default: return pack_blocks(rows, to);
  }
}

void unpack_row(DType type, bool bf16_pairs, const std::byte* panel, int lane, std::int64_t cols, float* to) {
  if (panel_layout(type).block_cols > 1) return unpack_blocks(type, panel, lane, cols, to);
  const std::int64_t group = bf16_pairs && type == DType::bf16 ? 2 : 1;
  const std::int64_t size = traits(type).block_bytes;
  for (std::int64_t k = 0; k < cols; ++k) {
    const std::int64_t index = k / group * group * kLanes + lane * group + k % group;
    dequantize_row(type, panel + index * size, to + k, 1);
  }
}

}  // namespace fixpoint::kernels::cpu
