#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tensor.h"

namespace fixpoint::kernels::cuda {

/// One matrix on the device: `rows` rows of `cols` values, `pitch` bytes apart, each starting at a multiple of 16 bytes.
/// See block_formats.h for what a row holds.
struct MatrixView {
  const std::uint8_t* data;
  std::int64_t pitch;
  std::int32_t rows, cols;
};

/// Bytes from one row to the next.
[[nodiscard]] std::int64_t row_pitch(DType type, std::int64_t cols);

/// A row of a file, as the kernels read it; `to` has row_pitch bytes, which are all written.
void pack_row(DType type, const std::byte* from, std::byte* to, std::int64_t cols);

}  // namespace fixpoint::kernels::cuda
