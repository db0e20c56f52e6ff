#pragma once

// The tensor cores' instruction. tests/cuda_emulation has a counterpart that spells out which lane holds which element.

#include <cuda_platform/platform.h>

#include "kernels/tensor.h"

namespace fixpoint::kernels::cuda {

/// d += a * b by a whole warp: a is 16 x 16 and b 16 x 8, of F16 or BF16; d is 16 x 8 in F32. With g = lane / 4, t = lane % 4 and
/// two elements a word, the lower half first (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type"):
///   a[0] row g, columns 2t, 2t + 1     a[1] row g + 8     a[2], a[3] the same rows, columns 2t + 8, 2t + 9
///   b[0] rows 2t, 2t + 1 of column g   b[1] rows 2t + 8, 2t + 9
///   d[0], d[1] row g, columns 2t, 2t + 1     d[2], d[3] row g + 8
template <DType type>
__device__ void multiply_tile(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  static_assert(type == DType::f16 || type == DType::bf16, "no such operands");
  if constexpr (type == DType::f16) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

}  // namespace fixpoint::kernels::cuda
