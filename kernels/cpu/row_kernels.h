#pragma once

#include "kernels/cpu/kernel_table.h"

/// Element-wise and per-row kernels. A row's result depends on that row alone.
namespace fixpoint::kernels::cpu {
namespace {

/// e^x. Range reduction by multiples of ln 2 (in two parts), polynomial of degree 7 for the rest; within 2 units in the
/// last place for x in [-87, 88], exactly 1 at 0, 0 below -87, +inf or more than 1e38 above 88.
template <class S>
typename S::F exp_lanes(typename S::F x) {
  using F = typename S::F;
  const F bounded = S::min(S::max(x, S::set(-87.5F)), S::set(88.5F));
  const F n = S::min(S::round(S::mul(bounded, S::set(1.44269504F))), S::set(127.0F));
  F r = S::fma(n, S::set(-0.693359375F), bounded);
  r = S::fma(n, S::set(2.12194440e-4F), r);
  F p = S::set(1.9875691500e-4F);
  p = S::fma(p, r, S::set(1.3981999507e-3F));
  p = S::fma(p, r, S::set(8.3334519073e-3F));
  p = S::fma(p, r, S::set(4.1665795894e-2F));
  p = S::fma(p, r, S::set(1.6666665459e-1F));
  p = S::fma(p, r, S::set(5.0000001201e-1F));
  p = S::add(S::fma(p, S::mul(r, r), r), S::set(1.0F));
  return S::keep_at_least(S::scale_by_power(p, n), x, -87.0F);
}

/// Calls body(offset, lanes) for each run of sixteen, the last one perhaps shorter.
template <class Body>
void for_lanes(std::int64_t n, Body body) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) body(i, kLanes);
  if (i < n) body(i, static_cast<int>(n - i));
}

template <class S>
typename S::F load_up_to(const float* p, int lanes) {
  return lanes == kLanes ? S::load(p) : S::load_some(p, lanes);
}

template <class S>
void store_up_to(float* p, typename S::F value, int lanes) {
  if (lanes == kLanes) {
    S::store(p, value);
  } else {
    S::store_some(p, value, lanes);
  }
}

template <class S>
void exp_row(const float* x, float* out, std::int64_t n) {
  for_lanes(n, [&](std::int64_t i, int lanes) {
    store_up_to<S>(out + i, exp_lanes<S>(load_up_to<S>(x + i, lanes)), lanes);
  });
}

template <class S>
void add_row(float* x, const float* delta, std::int64_t n) {
  for_lanes(n, [&](std::int64_t i, int lanes) {
    store_up_to<S>(x + i, S::add(load_up_to<S>(x + i, lanes), load_up_to<S>(delta + i, lanes)), lanes);
  });
}

template <class S>
void rms_norm_row(const float* x, const float* weight, float eps, float* out, std::int64_t n) {
  using F = typename S::F;
  F even = S::zero();
  F odd = S::zero();
  for_lanes(n, [&](std::int64_t i, int lanes) {
    const F v = load_up_to<S>(x + i, lanes);
    F& sum = i % (2 * kLanes) == 0 ? even : odd;
    sum = S::fma(v, v, sum);
  });
  const float mean = S::sum(S::add(even, odd)) / static_cast<float>(n);
  const F scale = S::set(1.0F / __builtin_sqrtf(mean + eps));
  for_lanes(n, [&](std::int64_t i, int lanes) {
    const F v = S::mul(S::mul(load_up_to<S>(x + i, lanes), scale), load_up_to<S>(weight + i, lanes));
    store_up_to<S>(out + i, v, lanes);
  });
}

template <class S>
void swiglu_row(const float* gate, const float* up, float* out, std::int64_t n) {
  using F = typename S::F;
  const F one = S::set(1.0F);
  for_lanes(n, [&](std::int64_t i, int lanes) {
    const F g = load_up_to<S>(gate + i, lanes);
    // Bounded, because the exponential is: g / e^-g vanishes. A NaN passes (max returns its second operand).
    const F silu = S::div(S::max(S::set(-88.0F), g), S::add(one, exp_lanes<S>(S::sub(S::zero(), g))));
    store_up_to<S>(out + i, S::mul(silu, load_up_to<S>(up + i, lanes)), lanes);
  });
}

template <class S>
void rope_half_head(float* head, const float* cos_sin, std::int64_t pairs) {
  using F = typename S::F;
  for_lanes(pairs, [&](std::int64_t i, int lanes) {
    const F c = load_up_to<S>(cos_sin + i, lanes);
    const F s = load_up_to<S>(cos_sin + pairs + i, lanes);
    const F x = load_up_to<S>(head + i, lanes);
    const F y = load_up_to<S>(head + pairs + i, lanes);
    store_up_to<S>(head + i, S::sub(S::mul(x, c), S::mul(y, s)), lanes);
    store_up_to<S>(head + pairs + i, S::fma(x, s, S::mul(y, c)), lanes);
  });
}

template <class S>
void rope_adjacent_head(float* head, const float* cos_sin, std::int64_t pairs) {
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float x = head[2 * i];
    const float y = head[2 * i + 1];
    const float c = cos_sin[i];
    const float s = cos_sin[pairs + i];
    head[2 * i] = x * c - y * s;
    head[2 * i + 1] = x * s + y * c;
  }
}

template <class S>
void store_f32_rows(const RowTile& t) {
  for (int r = 0; r < t.rows; ++r) {
    float* to = reinterpret_cast<float*>(t.to) + r * kLanes;
    for_lanes(t.cols, [&](std::int64_t i, int lanes) {
      const auto v = r < t.valid_rows ? load_up_to<S>(t.x + r * t.stride + i, lanes) : S::zero();
      S::store(to + i * t.rows, v);
    });
  }
}

template <class S>
void quantize_block(const float* x, QuantBlock& block) {
  using F = typename S::F;
  const F low = S::load(x);
  const F high = S::load(x + kLanes);
  const float peak = S::highest(S::max(S::abs(low), S::abs(high)));
  const F inverse = S::set(peak > 0.0F ? 127.0F / peak : 0.0F);
  const F limit = S::set(127.0F);
  const F floor = S::set(-127.0F);
  // max returns its second operand for a NaN: nothing undefined is converted.
  S::to_i8(block.codes, S::min(S::max(S::round(S::mul(low, inverse)), floor), limit));
  S::to_i8(block.codes + kLanes, S::min(S::max(S::round(S::mul(high, inverse)), floor), limit));
  std::int32_t sum_low = 0;
  std::int32_t sum_high = 0;
  for (int i = 0; i < kLanes; ++i) {
    sum_low += block.codes[i];
    sum_high += block.codes[kLanes + i];
  }
  block.scale = peak / 127.0F;
  block.sum = static_cast<float>(sum_low + sum_high);
  block.neg_sum = -(sum_low + sum_high);
  block.neg_sum_low = -sum_low;
}

template <class S>
void store_q8_rows(const RowTile& t) {
  for (int r = 0; r < t.rows; ++r) {
    auto* to = reinterpret_cast<QuantBlock*>(t.to) + r;
    for (std::int64_t b = 0; b < t.cols / 32; ++b, to += t.rows) {
      if (r < t.valid_rows) {
        quantize_block<S>(t.x + r * t.stride + 32 * b, *to);
      } else {
        *to = QuantBlock{};
      }
    }
  }
}

template <class S>
void row_to_f32(const float* from, std::byte* to, std::int64_t n) {
  for_lanes(n, [&](std::int64_t i, int lanes) {
    store_up_to<S>(reinterpret_cast<float*>(to) + i, load_up_to<S>(from + i, lanes), lanes);
  });
}

template <class S>
void row_to_f16(const float* from, std::byte* to, std::int64_t n) {
  auto* out = reinterpret_cast<std::uint16_t*>(to);
  for_lanes(n, [&](std::int64_t i, int lanes) {
    std::uint16_t whole[kLanes];
    const auto v = load_up_to<S>(from + i, lanes);
    S::to_f16(whole, S::min(S::max(v, S::set(-65504.0F)), S::set(65504.0F)));
    __builtin_memcpy(out + i, whole, static_cast<std::size_t>(lanes) * sizeof(std::uint16_t));
  });
}

template <class S>
void row_to_bf16(const float* from, std::byte* to, std::int64_t n) {
  auto* out = reinterpret_cast<std::uint16_t*>(to);
  for_lanes(n, [&](std::int64_t i, int lanes) {
    std::uint16_t whole[kLanes];
    S::to_bf16(whole, load_up_to<S>(from + i, lanes));
    __builtin_memcpy(out + i, whole, static_cast<std::size_t>(lanes) * sizeof(std::uint16_t));
  });
}

template <class S>
void use_row_kernels(KernelTable& table) {
  table.store_rows = {store_f32_rows<S>, nullptr, store_q8_rows<S>};
  table.add = add_row<S>;
  table.rms_norm = rms_norm_row<S>;
  table.swiglu = swiglu_row<S>;
  table.exp = exp_row<S>;
  table.rope_half = rope_half_head<S>;
  table.rope_adjacent = rope_adjacent_head<S>;
  table.to_kv = {row_to_f32<S>, row_to_f16<S>, row_to_bf16<S>};
}

}  // namespace
}  // namespace fixpoint::kernels::cpu
