#pragma once

#include <cuda_platform/platform.h>

#include "kernels/cuda/kv_geometry.h"

namespace fixpoint::kernels::cuda {

struct Eight {
  float v[8];
};

/// How keys and values are stored. The plain types: what one element is, to and from F32, and eight of them at a multiple of
/// 16 bytes. The quantised types: see quantised_kv.h.
template <KvType type>
struct KvFormat;

template <>
struct KvFormat<KvType::f32> {
  using Element = float;
  static __device__ float store(float value) { return value; }
  static __device__ Eight load(const float* from) {
    const Floats4 a = load_floats4(from);
    const Floats4 b = load_floats4(from + 4);
    return {{a.v[0], a.v[1], a.v[2], a.v[3], b.v[0], b.v[1], b.v[2], b.v[3]}};
  }
};

template <>
struct KvFormat<KvType::f16> {
  using Element = std::uint16_t;
  // What F16 cannot hold is stored as its largest value: an infinity would turn a whole context into NaN.
  static __device__ std::uint16_t store(float value) {
    if (value > 65504.0F) value = 65504.0F;
    if (value < -65504.0F) value = -65504.0F;
    return float_to_half(value);
  }
  static __device__ Eight load(const std::uint16_t* from) {
    const Words4 words = load_words4(from);
    Eight out;
    for (int i = 0; i < 4; ++i) {
      out.v[2 * i] = half_to_float(static_cast<std::uint16_t>(words.w[i]));
      out.v[2 * i + 1] = half_to_float(static_cast<std::uint16_t>(words.w[i] >> 16U));
    }
    return out;
  }
};

template <>
struct KvFormat<KvType::bf16> {
  using Element = std::uint16_t;
  static __device__ std::uint16_t store(float value) { return float_to_bfloat(value); }
  static __device__ Eight load(const std::uint16_t* from) {
    const Words4 words = load_words4(from);
    Eight out;
    for (int i = 0; i < 4; ++i) {
      out.v[2 * i] = bfloat_to_float(static_cast<std::uint16_t>(words.w[i]));
      out.v[2 * i + 1] = bfloat_to_float(static_cast<std::uint16_t>(words.w[i] >> 16U));
    }
    return out;
  }
};

/// The row of a position's keys, or of its values: [block][key, value][kv_head][slot], see KvGeometry.
inline __device__ std::int64_t kv_row(const KvGeometry& kv, std::int32_t block, bool of_values, std::int32_t head, std::int32_t slot) {
  const std::int64_t heads_before = std::int64_t{block} * 2 * kv.heads + (of_values ? kv.heads : 0) + head;
  return heads_before * kv.block_size + slot;
}

// A variable, since device code may not call a function of the host, not even for a constant.
template <KvType type>
inline constexpr bool kQuantised = is_quantised(type);

/// Elements `element`.. + 7 of a row; `element` is a multiple of 8 below padded_dim.
template <KvType type>
__device__ Eight load_eight(const KvGeometry& kv, std::int64_t row, int element) {
  if constexpr (kQuantised<type>) {
    return KvFormat<type>::load(kv, row, element);
  } else {
    return KvFormat<type>::load(reinterpret_cast<const typename KvFormat<type>::Element*>(kv.data + row * kv.row_bytes) + element);
  }
}

}  // namespace fixpoint::kernels::cuda
