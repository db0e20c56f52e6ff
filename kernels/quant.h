#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tensor.h"

namespace fixpoint::kernels {

/// `n` values of a row stored as `type`, as F32. `n` is a whole number of blocks; `from` needs no alignment.
void dequantize_row(DType type, const std::byte* from, float* to, std::int64_t n);

/// The inverse, by plain rounding to the nearest code (K-quants: no search for better scales). For tests and tools.
void quantize_row(DType type, const float* from, std::byte* to, std::int64_t n);

/// The eight 6-bit scales and minima of a Q4_K or Q5_K super-block, from its 12 packed bytes.
void unpack_k_scales(const std::uint8_t* packed, std::uint8_t* scales, std::uint8_t* minima);

}  // namespace fixpoint::kernels
