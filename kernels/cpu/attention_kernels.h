#pragma once

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/row_kernels.h"
#include "kernels/cpu/unroll.h"

/// Attention of a few query rows over one split of the context: an online softmax in tiles of four sub-tiles (64 positions
/// where blocks are multiples of 16), counted from the sequence's start. A row goes through the same tiles with the same
/// operations whichever rows, sequences or chunks share the call; what it may not see contributes exact zeros.
namespace fixpoint::kernels::cpu {
namespace {

/// Below every score that a model gives: a row that has seen nothing yet.
constexpr float kNothing = -1e30F;

/// Where the scales of a KV type go: nowhere; into a position's score and its weight, since one scale is for a whole head; or
/// into the elements of a key and, group by group, into the weights.
enum class KvScales : std::uint8_t { none, head, groups };

/// A KV type: sixteen numbers at a time. `kBytes` is an element's; INT4's two halves of a byte are two vectors (see
/// KvSubTile).
template <class S, int kElementBytes, KvScales kHow>
struct KvBase {
  using Simd = S;
  static constexpr int kBytes = kElementBytes;
  static constexpr KvScales kScales = kHow;
  /// Stored numbers times their scale times this are the values.
  static constexpr float kUnit = 1.0F;
};
template <class S>
struct F32Kv : KvBase<S, 4, KvScales::none> {
  static typename S::F load(const std::byte* p) { return S::load(reinterpret_cast<const float*>(p)); }
};
template <class S>
struct F16Kv : KvBase<S, 2, KvScales::none> {
  static typename S::F load(const std::byte* p) { return S::from_f16(reinterpret_cast<const std::uint16_t*>(p)); }
};
template <class S>
struct Bf16Kv : KvBase<S, 2, KvScales::none> {
  static typename S::F load(const std::byte* p) { return S::from_bf16(reinterpret_cast<const std::uint16_t*>(p)); }
};
template <class S>
struct Int8Kv : KvBase<S, 1, KvScales::head> {
  static typename S::F load(const std::byte* p) { return S::from_i8(reinterpret_cast<const std::uint8_t*>(p)); }
};
template <class S>
struct Fp8Kv : KvBase<S, 1, KvScales::head> {
  static constexpr float kUnit = 256.0F;
  static typename S::F load(const std::byte* p) { return S::from_e4m3(reinterpret_cast<const std::uint8_t*>(p)); }
};
template <class S>
struct Int4Kv : KvBase<S, 0, KvScales::groups> {
  static typename S::F load_half(const std::byte* p, bool high) { return S::from_nibbles(p, high); }
};

template <class Kv, int kRows, int kKeyTiles, int kValueVectors>
struct AttentionTile {
  using S = typename Kv::Simd;
  using F = typename S::F;
  static constexpr int kTileLanes = kTileSubTiles * kLanes;
  static constexpr int kVectorBytes = kLanes * Kv::kBytes;
  static constexpr bool kGroups = Kv::kScales == KvScales::groups;
  static constexpr std::int32_t kGroup = static_cast<std::int32_t>(kKvGroup);

  // Scores, then weights, of one tile: [row][position].
  alignas(64) float weights[kRows][kTileLanes];
  // Of a group of elements: weights times its scales, and what its offsets add up to.
  alignas(64) float group_weights[kGroups ? kRows : 1][kTileLanes];
  float group_offsets[kRows];
  F totals[kRows];
  float highest[kRows];

  // Positions of a sub-tile that row r sees.
  static int visible(const AttentionSplit& c, const KvSubTile& t, int r) {
    const std::int32_t n = c.limits[r] - t.first_position + 1;
    return n < t.slots ? n : t.slots;
  }

  // The index-th sixteen F16 numbers.
  static F scales(const std::byte* from, std::int32_t index) {
    const F scale = S::from_f16(reinterpret_cast<const std::uint16_t*>(from) + index * kLanes);
    return Kv::kUnit == 1.0F ? scale : S::mul(scale, S::set(Kv::kUnit));
  }

  template <int kTiles>
  [[gnu::always_inline]] static void add_products(const F (&key)[kTiles], const float* q, F (&sums)[kTiles][kRows]) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const F x = S::set(q[r]);
#pragma GCC unroll 16
      for (int t = 0; t < kTiles; ++t) {
        sums[t][r] = S::fma(key[t], x, sums[t][r]);
      }
    }
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
    if constexpr (kGroups) {
      for (std::int32_t start = 0; start < c.head_dim; start += kGroup) {
        F scale[kTiles];
        F offset[kTiles];
#pragma GCC unroll 16
        for (int t = 0; t < kTiles; ++t) {
          scale[t] = scales(tiles[t].key_scales, 2 * (start / kGroup));
          offset[t] = scales(tiles[t].key_scales, 2 * (start / kGroup) + 1);
        }
        const std::int32_t end = start + kGroup < c.head_dim ? start + kGroup : c.head_dim;
        for (std::int32_t d = start; d < end; d += 2) {
#pragma GCC unroll 2
          for (int half = 0; half < 2; ++half) {
            F key[kTiles];
#pragma GCC unroll 16
            for (int t = 0; t < kTiles; ++t) {
              key[t] = S::fma(Kv::load_half(keys[t] + d / 2 * kLanes, half == 1), scale[t], offset[t]);
            }
            add_products(key, c.q + (d + half) * kRows, sums);
          }
        }
      }
    } else {
      const float* q = c.q;
      for (std::int32_t d = 0; d < c.head_dim; ++d, q += kRows) {
        F key[kTiles];
#pragma GCC unroll 16
        for (int t = 0; t < kTiles; ++t) {
          key[t] = Kv::load(keys[t] + d * kVectorBytes);
        }
        add_products(key, q, sums);
      }
    }
#pragma GCC unroll 16
    for (int t = 0; t < kTiles; ++t) {
      [[maybe_unused]] F scale = S::zero();
      if constexpr (Kv::kScales == KvScales::head) scale = scales(tiles[t].key_scales, 0);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        if constexpr (Kv::kScales == KvScales::head) sums[t][r] = S::mul(sums[t][r], scale);
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

  // Weights that a position's scale is part of: scale * code * weight is added up with one product less.
  void scale_weights(const KvSubTile* tiles, int sub_tiles) {
    for (int t = 0; t < sub_tiles; ++t) {
      const F scale = scales(tiles[t].value_scales, 0);
      for (int r = 0; r < kRows; ++r) S::store(&weights[r][t * kLanes], S::mul(S::load(&weights[r][t * kLanes]), scale));
    }
  }
  void weigh_group(const KvSubTile* tiles, int sub_tiles, std::int32_t group) {
    for (int r = 0; r < kRows; ++r) {
      F offsets = S::zero();
      for (int t = 0; t < sub_tiles; ++t) {
        const F w = S::load(&weights[r][t * kLanes]);
        S::store(&group_weights[kGroups ? r : 0][t * kLanes], S::mul(w, scales(tiles[t].value_scales, 2 * group)));
        offsets = S::fma(w, scales(tiles[t].value_scales, 2 * group + 1), offsets);
      }
      group_offsets[r] = S::sum(offsets);
    }
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
        if constexpr (kGroups) sums[v][r] = S::add(sums[v][r], S::set(group_offsets[r]));
      }
    }
    const std::int64_t stride = kGroups ? c.padded_dim / 2 : static_cast<std::int64_t>(c.padded_dim) * Kv::kBytes;
    for (int t = 0; t < sub_tiles; ++t) {
      const std::byte* values = tiles[t].values + (kGroups ? d / kGroup * kLanes : static_cast<std::int64_t>(d) * Kv::kBytes);
      const float* w = kGroups ? &group_weights[0][t * kLanes] : &weights[0][t * kLanes];
      for (int i = 0; i < counts[t]; ++i, values += stride, ++w) {
        F value[kVectors];
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) {
          if constexpr (kGroups) {
            value[v] = Kv::load_half(values, kVectors == 1 ? d % kGroup != 0 : v == 1);
          } else {
            value[v] = Kv::load(values + v * kVectorBytes);
          }
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
    if constexpr (Kv::kScales == KvScales::head) scale_weights(tiles, sub_tiles);
    if constexpr (kGroups) {
      static_assert(kValueVectors * kLanes <= kGroup);
      for (std::int32_t d = 0; d < c.padded_dim; d += kValueVectors * kLanes) {
        if (d % kGroup == 0) weigh_group(tiles, sub_tiles, d / kGroup);
        add_values<kValueVectors>(c, tiles, counts, sub_tiles, corrections, d);
      }
    } else {
      std::int32_t d = 0;
      for (; d + kValueVectors * kLanes <= c.padded_dim; d += kValueVectors * kLanes) {
        add_values<kValueVectors>(c, tiles, counts, sub_tiles, corrections, d);
      }
      for (; d < c.padded_dim; d += kLanes) add_values<1>(c, tiles, counts, sub_tiles, corrections, d);
    }
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
void merge_rows(AttentionRow& into, const AttentionRow& from, std::int32_t padded_dim) {
  const float highest = from.highest > into.highest ? from.highest : into.highest;
  float factors[2 * kLanes];
  S::store(factors, exp_lanes<S>(S::set(into.highest - highest)));
  S::store(factors + kLanes, exp_lanes<S>(S::set(from.highest - highest)));
  const auto a = S::set(factors[0]);
  const auto b = S::set(factors[kLanes]);
  for (std::int32_t d = 0; d < padded_dim; d += kLanes) {
    S::store(into.sums + d, S::fma(S::load(from.sums + d), b, S::mul(S::load(into.sums + d), a)));
  }
  into.total = into.total * factors[0] + from.total * factors[kLanes];
  into.highest = highest;
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

// The scales of a key's groups take registers, too; a value's group is two vectors.
template <class Kv>
void wide_group_attention(std::array<AttentionKernel, kAttentionRows + 1>& to) {
  to[1] = attention_split<Kv, 1, 4, 2>;
  to[2] = attention_split<Kv, 2, 4, 2>;
  to[4] = attention_split<Kv, 4, 2, 2>;
  to[6] = attention_split<Kv, 6, 2, 2>;
  to[7] = attention_split<Kv, 7, 2, 2>;
  to[8] = attention_split<Kv, 8, 2, 2>;
}

template <class Kv>
void narrow_group_attention(std::array<AttentionKernel, kAttentionRows + 1>& to) {
  to[1] = attention_split<Kv, 1, 2, 2>;
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
    wide_attention<Int8Kv<S>>(table.attention[3]);
    wide_attention<Fp8Kv<S>>(table.attention[4]);
    wide_group_attention<Int4Kv<S>>(table.attention[5]);
  } else {
    table.attention_rows = {0, 1, 4, 4, 4, 8, 8, 8, 8};
    narrow_attention<F32Kv<S>>(table.attention[0]);
    narrow_attention<F16Kv<S>>(table.attention[1]);
    narrow_attention<Bf16Kv<S>>(table.attention[2]);
    narrow_attention<Int8Kv<S>>(table.attention[3]);
    narrow_attention<Fp8Kv<S>>(table.attention[4]);
    narrow_group_attention<Int4Kv<S>>(table.attention[5]);
  }
  table.merge = merge_rows<S>;
  table.finish_row = finish_attention_row<S>;
}

}  // namespace
}  // namespace fixpoint::kernels::cpu
