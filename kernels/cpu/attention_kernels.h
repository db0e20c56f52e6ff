#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/unroll.h"

/// Attention of a few query rows over one split of the context: an online softmax in tiles of 64 positions that start at
/// multiples of 64 in the sequence's blocks. A row goes through the same tiles with the same operations whichever rows,
/// sequences or chunks share the call; what it may not see contributes exact zeros.
namespace fixpoint::kernels::cpu {
namespace {

/// Below every score that a model gives: a row that has seen nothing yet.
constexpr float kNothing = -1e30F;

template <class S>
struct F32Kv {
  using Simd = S;
  static constexpr int kBytes = 4;
  static typename S::F load(const std::byte* p) { return S::load(reinterpret_cast<const float*>(p)); }
};
template <class S>
struct F16Kv {
  using Simd = S;
  static constexpr int kBytes = 2;
  static typename S::F load(const std::byte* p) { return S::from_f16(reinterpret_cast<const std::uint16_t*>(p)); }
};
template <class S>
struct Bf16Kv {
  using Simd = S;
  static constexpr int kBytes = 2;
  static typename S::F load(const std::byte* p) { return S::from_bf16(reinterpret_cast<const std::uint16_t*>(p)); }
};

template <class Kv, int kRows, int kKeyTiles, int kValueVectors>
struct AttentionTile {
  using S = typename Kv::Simd;
  using F = typename S::F;
  static constexpr int kTileLanes = kTileSubTiles * kLanes;
  static constexpr int kVectorBytes = kLanes * Kv::kBytes;

  // Scores, then weights, of one tile: [row][position].
  alignas(64) float weights[kRows][kTileLanes];
  F totals[kRows];
  float highest[kRows];

  // Positions of a sub-tile that row r sees.
  static int visible(const AttentionSplit& c, const KvSubTile& t, int r) {
    const std::int32_t n = c.limits[r] - t.first_position + 1;
    return n < t.slots ? n : t.slots;
  }

  template <int kTiles>
  [[gnu::always_inline]] void score(const AttentionSplit& c, const KvSubTile* tiles, int first) {
    F sums[kTiles][kRows];
    const std::byte* keys[kTiles];
#pragma GCC unroll 16
    for (int t = 0; t < kTiles; ++t) {
      keys[t] = tiles[t].keys;
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        sums[t][r] = S::zero();
      }
    }
    const float* q = c.q;
    for (std::int32_t d = 0; d < c.head_dim; ++d, q += kRows) {
      F key[kTiles];
#pragma GCC unroll 16
      for (int t = 0; t < kTiles; ++t) {
        key[t] = Kv::load(keys[t] + d * kVectorBytes);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const F x = S::set(q[r]);
#pragma GCC unroll 16
        for (int t = 0; t < kTiles; ++t) {
          sums[t][r] = S::fma(key[t], x, sums[t][r]);
        }
      }
    }
#pragma GCC unroll 16
    for (int t = 0; t < kTiles; ++t) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        S::store(&weights[r][(first + t) * kLanes], S::neg_inf_from(sums[t][r], visible(c, tiles[t], r)));
      }
    }
  }

  // Scores to weights relative to the highest score so far; returns what earlier sums are multiplied with.
  [[gnu::always_inline]] float to_weights(int r, int sub_tiles) {
    float* w = weights[r];
    F top = S::load(w);
    for (int t = 1; t < sub_tiles; ++t) top = S::max(top, S::load(w + t * kLanes));
    const float tile_highest = S::highest(top);
    const float now = tile_highest > highest[r] ? tile_highest : highest[r];
    float correction[kLanes];
    S::store(correction, exp_lanes<S>(S::set(highest[r] - now)));
    F total = S::mul(totals[r], S::set(correction[0]));
    for (int t = 0; t < sub_tiles; ++t) {
      const F e = exp_lanes<S>(S::sub(S::load(w + t * kLanes), S::set(now)));
      S::store(w + t * kLanes, e);
      total = S::add(total, e);
    }
    totals[r] = total;
    highest[r] = now;
    return correction[0];
  }

  // sums[r][d..] = sums * correction + weights * values, for kVectors vectors of the head.
  template <int kVectors>
  [[gnu::always_inline]] void add_values(const AttentionSplit& c, const KvSubTile* tiles, const int* counts,
                                         int sub_tiles, const float* corrections, std::int32_t d) {
    F sums[kVectors][kRows];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const F before = S::load(c.state->sums + r * c.padded_dim + d + v * kLanes);
        sums[v][r] = S::mul(before, S::set(corrections[r]));
      }
    }
    const std::int64_t stride = static_cast<std::int64_t>(c.padded_dim) * Kv::kBytes;
    for (int t = 0; t < sub_tiles; ++t) {
      const std::byte* values = tiles[t].values + static_cast<std::int64_t>(d) * Kv::kBytes;
      const float* w = &weights[0][t * kLanes];
      for (int i = 0; i < counts[t]; ++i, values += stride, ++w) {
        F value[kVectors];
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          value[v] = Kv::load(values + v * kVectorBytes);
        }
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          const F x = S::set(w[r * kTileLanes]);
#pragma GCC unroll 16
          for (int v = 0; v < kVectors; ++v) {
            sums[v][r] = S::fma(value[v], x, sums[v][r]);
          }
        }
      }
    }
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        S::store(c.state->sums + r * c.padded_dim + d + v * kLanes, sums[v][r]);
      }
    }
  }

  void tile(const AttentionSplit& c, const KvSubTile* tiles, int sub_tiles) {
    int counts[kTileSubTiles];  // positions that any row sees
    for (int t = 0; t < sub_tiles; ++t) {
      counts[t] = 0;
      for (int r = 0; r < kRows; ++r) {
        const int n = visible(c, tiles[t], r);
        if (n > counts[t]) counts[t] = n;
      }
    }
    int t = 0;
    for (; t + kKeyTiles <= sub_tiles; t += kKeyTiles) score<kKeyTiles>(c, tiles + t, t);
    for (; t < sub_tiles; ++t) score<1>(c, tiles + t, t);
    float corrections[kRows];
    for (int r = 0; r < kRows; ++r) corrections[r] = to_weights(r, sub_tiles);
    std::int32_t d = 0;
    for (; d + kValueVectors * kLanes <= c.padded_dim; d += kValueVectors * kLanes) {
      add_values<kValueVectors>(c, tiles, counts, sub_tiles, corrections, d);
    }
    for (; d < c.padded_dim; d += kLanes) add_values<1>(c, tiles, counts, sub_tiles, corrections, d);
  }

  void run(const AttentionSplit& c) {
    for (int r = 0; r < kRows; ++r) {
      totals[r] = S::zero();
      highest[r] = kNothing;
      for (std::int32_t d = 0; d < c.padded_dim; d += kLanes) S::store(c.state->sums + r * c.padded_dim + d, S::zero());
    }
    for (int t = 0; t < c.num_sub_tiles; t += kTileSubTiles) {
      const int left = c.num_sub_tiles - t;
      tile(c, c.sub_tiles + t, left < kTileSubTiles ? left : kTileSubTiles);
    }
    for (int r = 0; r < kRows; ++r) {
      c.state->totals[r] = S::sum(totals[r]);
      c.state->highest[r] = highest[r];
    }
  }
};

template <class Kv, int kRows, int kKeyTiles, int kValueVectors>
void attention_split(const AttentionSplit& c) {
  AttentionTile<Kv, kRows, kKeyTiles, kValueVectors> tile;
  tile.run(c);
}

template <class S>
void merge_states(AttentionState& into, const AttentionState& from, int rows, std::int32_t padded_dim) {
  for (int r = 0; r < rows; ++r) {
    const float highest = from.highest[r] > into.highest[r] ? from.highest[r] : into.highest[r];
    float factors[2 * kLanes];
    S::store(factors, exp_lanes<S>(S::set(into.highest[r] - highest)));
    S::store(factors + kLanes, exp_lanes<S>(S::set(from.highest[r] - highest)));
    const auto a = S::set(factors[0]);
    const auto b = S::set(factors[kLanes]);
    for (std::int32_t d = 0; d < padded_dim; d += kLanes) {
      float* sums = into.sums + r * padded_dim + d;
      S::store(sums, S::fma(S::load(from.sums + r * padded_dim + d), b, S::mul(S::load(sums), a)));
    }
    into.totals[r] = into.totals[r] * factors[0] + from.totals[r] * factors[kLanes];
    into.highest[r] = highest;
  }
}

template <class S>
void finish_attention_row(const float* sums, float total, float* out, std::int32_t head_dim) {
  const auto divisor = S::set(total);
  for_lanes(head_dim, [&](std::int64_t i, int lanes) {
    store_up_to<S>(out + i, S::div(S::load(sums + i), divisor), lanes);
  });
}

template <class Kv>
void wide_attention(std::array<AttentionKernel, kAttentionRows + 1>& to) {
  to[1] = attention_split<Kv, 1, 4, 4>;
  to[2] = attention_split<Kv, 2, 4, 4>;
  to[4] = attention_split<Kv, 4, 4, 4>;
  to[6] = attention_split<Kv, 6, 4, 4>;
  to[7] = attention_split<Kv, 7, 2, 2>;
  to[8] = attention_split<Kv, 8, 2, 2>;
}

template <class Kv>
void narrow_attention(std::array<AttentionKernel, kAttentionRows + 1>& to) {
  to[1] = attention_split<Kv, 1, 4, 4>;
  to[4] = attention_split<Kv, 4, 1, 1>;
  to[8] = attention_split<Kv, 8, 1, 1>;
}

template <class S, bool kWide>
void use_attention_kernels(KernelTable& table) {
  if constexpr (kWide) {
    table.attention_rows = {0, 1, 2, 4, 4, 6, 6, 7, 8};
    wide_attention<F32Kv<S>>(table.attention[0]);
    wide_attention<F16Kv<S>>(table.attention[1]);
    wide_attention<Bf16Kv<S>>(table.attention[2]);
  } else {
    table.attention_rows = {0, 1, 4, 4, 4, 8, 8, 8, 8};
    narrow_attention<F32Kv<S>>(table.attention[0]);
    narrow_attention<F16Kv<S>>(table.attention[1]);
    narrow_attention<Bf16Kv<S>>(table.attention[2]);
  }
  table.merge = merge_states<S>;
  table.finish_row = finish_attention_row<S>;
}

}  // namespace
}  // namespace fixpoint::kernels::cpu
