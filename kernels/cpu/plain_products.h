#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/unroll.h"

/// Products with weights that are numbers themselves. One output is one chain of multiply-adds over ascending columns,
/// in every kernel of a type: the bits do not depend on how many rows or panels are computed together.
namespace fixpoint::kernels::cpu {
namespace {

template <class S>
struct F32Weights {
  using Simd = S;
  using Word = float;
  static constexpr int kWordBytes = 64;   // of sixteen outputs, for one word of x
  static constexpr int kColumns = 1;      // in a word
  static typename S::F load(const std::byte* p) { return S::load(reinterpret_cast<const float*>(p)); }
  static typename S::F broadcast(const float* x) { return S::set(*x); }
  static void add_product(typename S::F& acc, typename S::F w, typename S::F x) { acc = S::fma(w, x, acc); }
};

template <class S>
struct F16Weights : F32Weights<S> {
  static constexpr int kWordBytes = 32;
  static typename S::F load(const std::byte* p) { return S::from_f16(reinterpret_cast<const std::uint16_t*>(p)); }
};

template <class S>
struct Bf16Weights : F32Weights<S> {
  static constexpr int kWordBytes = 32;
  static typename S::F load(const std::byte* p) { return S::from_bf16(reinterpret_cast<const std::uint16_t*>(p)); }
};

template <class W, int kRows, int kPanels>
struct PlainTile {
  using S = typename W::Simd;
  using F = typename S::F;
  using Word = typename W::Word;

  static constexpr int kNearBytes = 1024;
  static constexpr int kFarBytes = 4096;  // where the arithmetic of many rows fills the window of the next loads

  F acc[kPanels][kRows];

  // `x` points at word `u` of the first row, `w` at word `u` of the first panel.
  [[gnu::always_inline]] void step(const std::byte* w, std::int64_t panel_bytes, const Word* x) {
    decltype(W::load(w)) weight[kPanels];
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) {
      weight[p] = W::load(w + p * panel_bytes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const auto value = W::broadcast(x + r * kLanes);
#pragma GCC unroll 16
      for (int p = 0; p < kPanels; ++p) {
        W::add_product(acc[p][r], weight[p], value);
      }
    }
  }

  [[gnu::always_inline]] static int lanes(const PanelProduct& c, std::int64_t panel) {
    return panel + 1 == c.num_panels ? c.last_lanes : kLanes;
  }

  [[gnu::always_inline]] void start(const PanelProduct& c, std::int64_t panel) {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const float* before = c.out + r * c.out_stride + (panel + p) * kLanes;
        acc[p][r] = c.first_col > 0 && r < c.valid_rows ? S::load_some(before, lanes(c, panel + p)) : S::zero();
      }
    }
  }

  [[gnu::always_inline]] void run(const PanelProduct& c, std::int64_t panel) {
    start(c, panel);
    const std::int64_t first = c.first_col / W::kColumns;
    const std::byte* w = c.panels + panel * c.panel_bytes + first * W::kWordBytes;
    const Word* x = reinterpret_cast<const Word*>(c.x) + first * kRows;
    std::int64_t left = (c.end_col - c.first_col + W::kColumns - 1) / W::kColumns;
    for (; left >= kLanes; left -= kLanes) {
      for (int quarter = 0; quarter < 4; ++quarter) {
#pragma GCC unroll 16
        for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 4
          for (int line = 0; line < 4 * W::kWordBytes; line += 64) {
            __builtin_prefetch(w + p * c.panel_bytes + kNearBytes + line);
            if constexpr (kRows >= 4) __builtin_prefetch(w + p * c.panel_bytes + kFarBytes + line, 0, kSecondLevel);
          }
        }
#pragma GCC unroll 16
        for (int j = 0; j < 4; ++j) {
          step(w + j * W::kWordBytes, c.panel_bytes, x + j);
        }
        w += 4 * W::kWordBytes;
        x += 4;
      }
      x += (kRows - 1) * kLanes;
    }
    for (; left > 0; --left, w += W::kWordBytes, ++x) step(w, c.panel_bytes, x);
  }

  [[gnu::always_inline]] void store(const PanelProduct& c, std::int64_t panel) const {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) {
      const std::int64_t column = (panel + p) * kLanes;
      const int width = lanes(c, panel + p);
      const bool with_bias = c.bias != nullptr && c.end_col == c.cols;
      const F bias = with_bias ? S::load_some(c.bias + column, width) : S::zero();
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        if (r < c.valid_rows) {
          const F value = with_bias ? S::add(acc[p][r], bias) : acc[p][r];
          S::store_some(c.out + r * c.out_stride + column, value, width);
        }
      }
    }
  }
};

template <class W, int kRows, int kPanels>
void plain_product(const PanelProduct& c) {
  std::int64_t panel = 0;
  for (; panel + kPanels <= c.num_panels; panel += kPanels) {
    PlainTile<W, kRows, kPanels> tile;
    tile.run(c, panel);
    tile.store(c, panel);
  }
  for (; panel < c.num_panels; ++panel) {
    PlainTile<W, kRows, 1> tile;
    tile.run(c, panel);
    tile.store(c, panel);
  }
}

/// For machines with 32 registers: up to 24 sums at a time.
template <class W>
ProductKernels wide_plain_products(RowForm form) {
  return {form,
          {1, 2, 4, 6, 8, 12, 16, 0},
          {plain_product<W, 1, 4>, plain_product<W, 2, 4>, plain_product<W, 4, 4>, plain_product<W, 6, 4>,
           plain_product<W, 8, 2>, plain_product<W, 12, 2>, plain_product<W, 16, 1>}};
}

template <class W>
ProductKernels narrow_plain_products(RowForm form) {
  return {form, {1, 4, 0}, {plain_product<W, 1, 4>, plain_product<W, 4, 1>}};
}

}  // namespace
}  // namespace fixpoint::kernels::cpu
