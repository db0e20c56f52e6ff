#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/panel_layout.h"
#include "kernels/cpu/unroll.h"

/// Products with block types: 8-bit dot products inside a block of 32 columns (whole numbers, so exact), then
/// sum += scale of x * (scale of w * dot [+ minimum of w * sum of x's codes]) in F32, over ascending blocks.
namespace fixpoint::kernels::cpu {
namespace {

/// How a block's dot product becomes a number.
enum class Affine : std::uint8_t {
  centred,   ///< codes are relative to 2^kCentreBits
  minimum,   ///< a minimum is added
  halves,    ///< centred, with one scale for each sixteen columns
};

template <class S>
struct Scales {
  typename S::F scale;
  typename S::F other;  ///< minimum, or the scale of the second half
};

template <class S>
typename S::F f16_lanes(const std::byte* p) {
  return S::from_f16(reinterpret_cast<const std::uint16_t*>(p));
}

template <class S>
[[gnu::always_inline]] inline void load_nibbles(const std::byte* p, typename S::B (&codes)[8]) {
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    const typename S::B both = S::load_bytes(p + 64 * i);
    codes[2 * i] = S::low_nibbles(both);
    codes[2 * i + 1] = S::high_nibbles(both);
  }
}

template <class S>
[[gnu::always_inline]] inline void load_five_bits(const std::byte* p, typename S::B (&codes)[8]) {
  load_nibbles<S>(p, codes);
  const typename S::B fifth = S::load_bytes(p + 256);
  unroll<8>([&](auto g) __attribute__((always_inline)) { codes[g] = S::template merge<4 - g, 16>(codes[g], fifth); });
}

template <class S>
[[gnu::always_inline]] inline void load_six_bits(const std::byte* p, typename S::B (&codes)[8]) {
  load_nibbles<S>(p, codes);
  unroll<8>([&](auto g) __attribute__((always_inline)) {
    const typename S::B high = S::load_bytes(p + 256 + 64 * (g / 4));
    codes[g] = S::template merge<4 - 2 * (g % 4), 48>(codes[g], high);
  });
}

template <class S>
[[gnu::always_inline]] inline void load_eight_bits(const std::byte* p, typename S::B (&codes)[8]) {
#pragma GCC unroll 16
  for (int g = 0; g < 8; ++g) {
    codes[g] = S::load_bytes(p + 64 * g);
  }
}

/// What the formats of one scale entry a block share.
template <class S, DType kDType, Affine kAffineKind, int kBits>
struct Legacy {
  using Simd = S;
  static constexpr DType kType = kDType;
  static constexpr Affine kAffine = kAffineKind;
  static constexpr int kCentreBits = kBits;
  static constexpr int kBlocks = 1;  // that share a header of the scales
  struct Header {};
  static Header header(const std::byte*) { return {}; }
  static Scales<S> scales(const Header&, const std::byte* p, int) {
    return {f16_lanes<S>(p), kAffine == Affine::minimum ? f16_lanes<S>(p + 32) : S::zero()};
  }
};

template <class S, DType kDType>
struct KQuant {
  using Simd = S;
  static constexpr DType kType = kDType;
  static constexpr Affine kAffine = Affine::minimum;
  static constexpr int kCentreBits = 0;
  static constexpr int kBlocks = 8;
  struct Header {
    typename S::F d, neg_dmin;
  };
  static Header header(const std::byte* p) { return {f16_lanes<S>(p), S::sub(S::zero(), f16_lanes<S>(p + 32))}; }
  static Scales<S> scales(const Header& h, const std::byte* p, int block) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(p) + 64 + 32 * block;
    return {S::mul(h.d, S::from_u8(bytes)), S::mul(h.neg_dmin, S::from_u8(bytes + 16))};
  }
};

template <class S>
struct Q8_0 : Legacy<S, DType::q8_0, Affine::centred, 7> {
  static void codes(const std::byte* p, typename S::B (&c)[8]) { load_eight_bits<S>(p, c); }
};
template <class S>
struct Q4_0 : Legacy<S, DType::q4_0, Affine::centred, 3> {
  static void codes(const std::byte* p, typename S::B (&c)[8]) { load_nibbles<S>(p, c); }
};
template <class S>
struct Q4_1 : Legacy<S, DType::q4_1, Affine::minimum, 0> {
  static void codes(const std::byte* p, typename S::B (&c)[8]) { load_nibbles<S>(p, c); }
};
template <class S>
struct Q5_0 : Legacy<S, DType::q5_0, Affine::centred, 4> {
  static void codes(const std::byte* p, typename S::B (&c)[8]) { load_five_bits<S>(p, c); }
};
template <class S>
struct Q5_1 : Legacy<S, DType::q5_1, Affine::minimum, 0> {
  static void codes(const std::byte* p, typename S::B (&c)[8]) { load_five_bits<S>(p, c); }
};
template <class S>
struct Q4_K : KQuant<S, DType::q4_k> {
  static void codes(const std::byte* p, typename S::B (&c)[8]) { load_nibbles<S>(p, c); }
};
template <class S>
struct Q5_K : KQuant<S, DType::q5_k> {
  static void codes(const std::byte* p, typename S::B (&c)[8]) { load_five_bits<S>(p, c); }
};
template <class S>
struct Q6_K {
  using Simd = S;
  static constexpr DType kType = DType::q6_k;
  static constexpr Affine kAffine = Affine::halves;
  static constexpr int kCentreBits = 5;
  static constexpr int kBlocks = 8;
  using Header = typename S::F;
  static Header header(const std::byte* p) { return f16_lanes<S>(p); }
  static Scales<S> scales(const Header& d, const std::byte* p, int block) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(p) + 32 + 32 * block;
    return {S::mul(d, S::from_i8(bytes)), S::mul(d, S::from_i8(bytes + 16))};
  }
  static void codes(const std::byte* p, typename S::B (&c)[8]) { load_six_bits<S>(p, c); }
};

template <class Format, int kRows>
struct BlockTile {
  using S = typename Format::Simd;
  using F = typename S::F;
  using I = typename S::I;
  static constexpr bool kQ8 = Format::kType == DType::q8_0;
  static constexpr int kTogether = kRows < 4 ? kRows : 4;  // rows whose dot products are interleaved
  static_assert(kRows % kTogether == 0 || kRows % 2 == 0);

  // The first level has too few buffers for misses to keep one core's share of the memory busy, so that a panel is asked
  // into the second one long before it is asked into the first.
  static constexpr int kNearBytes = 2048;
  static constexpr int kFarBytes = 16384;
  static constexpr int kPanelsAhead = 2;  // of the scales, which lie behind the codes of their panel

  F acc[kRows];

  [[gnu::always_inline]] static I start(const QuantBlock& x) {
    if constexpr (kQ8) return S::q8_start(&x.neg_sum);
    if constexpr (Format::kAffine == Affine::centred) return S::template int_shifted<Format::kCentreBits>(&x.neg_sum);
    return S::int_set(0);
  }

  [[gnu::always_inline]] static I dot(I sum, typename S::B w, const std::int8_t* x) {
    if constexpr (kQ8) return S::q8_dot(sum, w, x);
    return S::dot(sum, w, x);
  }

  template <int kCount>
  [[gnu::always_inline]] void add_rows(const typename S::B (&w)[8], const Scales<S>& s, const QuantBlock* x, int first) {
    I sum[kCount];
    I second[kCount];
#pragma GCC unroll 16
    for (int r = 0; r < kCount; ++r) {
      const QuantBlock& b = x[first + r];
      if constexpr (Format::kAffine == Affine::halves) {
        sum[r] = S::template int_shifted<Format::kCentreBits>(&b.neg_sum_low);
        second[r] = S::int_sub(S::template int_shifted<Format::kCentreBits>(&b.neg_sum), sum[r]);
      } else {
        sum[r] = start(b);
      }
    }
#pragma GCC unroll 16
    for (int g = 0; g < 8; ++g) {
#pragma GCC unroll 16
      for (int r = 0; r < kCount; ++r) {
        const std::int8_t* codes = x[first + r].codes + 4 * g;
        if (Format::kAffine == Affine::halves && g >= 4) {
          second[r] = dot(second[r], w[g], codes);
        } else {
          sum[r] = dot(sum[r], w[g], codes);
        }
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kCount; ++r) {
      const QuantBlock& b = x[first + r];
      F term = S::mul(S::to_float(sum[r]), s.scale);
      if constexpr (Format::kAffine == Affine::minimum) term = S::fma(s.other, S::set(b.sum), term);
      if constexpr (Format::kAffine == Affine::halves) term = S::fma(S::to_float(second[r]), s.other, term);
      acc[first + r] = S::fma(term, S::set(b.scale), acc[first + r]);
    }
  }

  [[gnu::always_inline]] void add_block(const std::byte* codes, const Scales<S>& s, const QuantBlock* x) {
    typename S::B w[8];
    Format::codes(codes, w);
#pragma GCC unroll 16
    for (int i = 0; i < kRows / kTogether; ++i) {
      add_rows<kTogether>(w, s, x, i * kTogether);
    }
    if constexpr (kRows % kTogether != 0) add_rows<kRows % kTogether>(w, s, x, kRows - kRows % kTogether);
  }

  [[gnu::always_inline]] static int lanes(const PanelProduct& c, std::int64_t panel) {
    return panel + 1 == c.num_panels ? c.last_lanes : kLanes;
  }

  [[gnu::always_inline]] void run(const PanelProduct& c, std::int64_t index) {
    constexpr PanelLayout kLayout = panel_layout(Format::kType);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const float* before = c.out + r * c.out_stride + index * kLanes;
      acc[r] = c.first_col > 0 && r < c.valid_rows ? S::load_some(before, lanes(c, index)) : S::zero();
    }
    const std::byte* start = c.panels + index * c.panel_bytes;
    const std::byte* panel = start + c.first_col / 32 * kLayout.code_bytes;
    const std::byte* scales =
        start + c.cols / 32 * kLayout.code_bytes + c.first_col / kLayout.block_cols * kLayout.scale_bytes;
    const auto* x = reinterpret_cast<const QuantBlock*>(c.x) + c.first_col / 32 * kRows;
    const std::int64_t headers = (c.end_col - c.first_col) / kLayout.block_cols;
    for (std::int64_t h = 0; h < headers; ++h, scales += kLayout.scale_bytes) {
#pragma GCC unroll 8
      for (int line = 0; line < kLayout.scale_bytes; line += 64) {
        __builtin_prefetch(scales + kPanelsAhead * c.panel_bytes + line, 0, kSecondLevel);
      }
      const typename Format::Header header = Format::header(scales);
      for (int b = 0; b < Format::kBlocks; ++b, panel += kLayout.code_bytes, x += kRows) {
        // The dot products of many rows fill the window in which the processor would find the next loads by itself.
#pragma GCC unroll 8
        for (int line = 0; line < kLayout.code_bytes; line += 64) {
          __builtin_prefetch(panel + kNearBytes + line);
          __builtin_prefetch(panel + kFarBytes + line, 0, kSecondLevel);
        }
        add_block(panel, Format::scales(header, scales, b), x);
      }
    }
  }

  [[gnu::always_inline]] void store(const PanelProduct& c, std::int64_t panel) const {
    const std::int64_t column = panel * kLanes;
    const int width = lanes(c, panel);
    const bool with_bias = c.bias != nullptr && c.end_col == c.cols;
    const F bias = with_bias ? S::load_some(c.bias + column, width) : S::zero();
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      if (r < c.valid_rows) {
        const F value = with_bias ? S::add(acc[r], bias) : acc[r];
        S::store_some(c.out + r * c.out_stride + column, value, width);
      }
    }
  }
};

template <class Format, int kRows>
void block_product(const PanelProduct& c) {
  for (std::int64_t panel = 0; panel < c.num_panels; ++panel) {
    BlockTile<Format, kRows> tile;
    tile.run(c, panel);
    tile.store(c, panel);
  }
}

/// How many kernels to build: those for a machine's best instructions for many numbers of rows, the others for few.
enum class RowSizes : std::uint8_t { many, some, few };

template <class Format, RowSizes kSizes>
ProductKernels block_products() {
  if constexpr (kSizes == RowSizes::many) {
    return {RowForm::q8,
            {1, 2, 4, 6, 8, 12, 16, 0},
            {block_product<Format, 1>, block_product<Format, 2>, block_product<Format, 4>, block_product<Format, 6>,
             block_product<Format, 8>, block_product<Format, 12>, block_product<Format, 16>}};
  } else if constexpr (kSizes == RowSizes::some) {
    return {RowForm::q8, {1, 8, 0}, {block_product<Format, 1>, block_product<Format, 8>}};
  } else {
    return {RowForm::q8, {1, 4, 0}, {block_product<Format, 1>, block_product<Format, 4>}};
  }
}

template <class S, RowSizes kSizes>
void use_block_products(KernelTable& table) {
  const auto set = [&]<class Format>() {
    table.products[static_cast<std::size_t>(Format::kType)] = block_products<Format, kSizes>();
  };
  set.template operator()<Q8_0<S>>();
  set.template operator()<Q4_0<S>>();
  set.template operator()<Q4_1<S>>();
  set.template operator()<Q5_0<S>>();
  set.template operator()<Q5_1<S>>();
  set.template operator()<Q4_K<S>>();
  set.template operator()<Q5_K<S>>();
  set.template operator()<Q6_K<S>>();
}

}  // namespace
}  // namespace fixpoint::kernels::cpu
