#pragma once

#include <cstdint>

#include "kernels/kv_type.h"

namespace fixpoint::kernels {

/// Quantises one token's keys (or values) of one KV head as KvType says: a code for each of `n` elements (INT8 as two's
/// complement, E4M3 as its byte, INT4 as 0..15) and kv_scales(type, n) F16 numbers, of which INT4 has scale and offset by
/// turns. Codes are rounded to the nearest even of x / scale with the scale as it is stored. What no F16 scale can
/// express is bounded; a NaN is stored as zero. `type` is a quantised one.
void quantize_kv(KvType type, const float* from, std::int64_t n, std::uint8_t* codes, std::uint16_t* scales);

/// The inverse.
void dequantize_kv(KvType type, const std::uint8_t* codes, const std::uint16_t* scales, std::int64_t n, float* to);

}  // namespace fixpoint::kernels
