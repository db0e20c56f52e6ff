#pragma once

// The tensor cores' instruction, lane for lane as the PTX ISA lays its operands out ("Matrix Fragments for mma.m16n8k16 with
// floating point type"), from the ISA's formulas for element i: a mistake in a kernel's fragments gives wrong numbers here, too.
// The order in which a device adds is its own.

#include <cuda_platform/platform.h>

#include "kernels/tensor.h"

namespace fixpoint::kernels::cuda {

template <DType type>
float tile_element(const std::byte* words, int i) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, words + 2 * i, sizeof bits);
  return type == DType::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
}

template <DType type>
void multiply_tile(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  static_assert(type == DType::f16 || type == DType::bf16, "no such operands");
  auto& runner = cuda_emulation::BlockRunner::current();
  const int group = runner.thread().lane / 4;
  const int in_group = runner.thread().lane % 4;

  float left[2][16];  // rows `group` and `group` + 8 of a
  runner.warp_exchange(cuda_emulation::WarpOperation::tile_product, kAllLanes, a, sizeof a);
  for (int t = 0; t < 4; ++t) {
    for (int i = 0; i < 8; ++i) {
      const bool upper = i < 2 || (4 <= i && i < 6);
      const int col = 2 * t + (i & 1) + (i < 4 ? 0 : 8);
      left[upper ? 0 : 1][col] = tile_element<type>(runner.given(4 * group + t), i);
    }
  }
  float right[16][2];  // the columns of this lane's elements of d
  runner.warp_exchange(cuda_emulation::WarpOperation::tile_product, kAllLanes, b, sizeof b);
  for (int col = 0; col < 2; ++col) {
    for (int t = 0; t < 4; ++t) {
      for (int i = 0; i < 4; ++i) {
        const int row = 2 * t + (i & 1) + (i < 2 ? 0 : 8);
        right[row][col] = tile_element<type>(runner.given(4 * (2 * in_group + col) + t), i);
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 16; ++k) d[i] += left[i < 2 ? 0 : 1][k] * right[k][i & 1];
  }
}

}  // namespace fixpoint::kernels::cuda
