#include "kernels/cuda/block_layout.h"

#include <cstring>
#include <initializer_list>

namespace fixpoint::kernels::cuda {
namespace {

/// A piece of each block, `bytes` at `offset`, gathered over the row.
struct Plane {
  std::int64_t offset, bytes;
};

void gather_planes(const std::byte* from, std::byte* to, std::int64_t blocks, std::int64_t block_bytes,
                   std::initializer_list<Plane> planes) {
  for (const Plane& plane : planes) {
    for (std::int64_t b = 0; b < blocks; ++b, to += plane.bytes) {
      std::memcpy(to, from + b * block_bytes + plane.offset, static_cast<std::size_t>(plane.bytes));
    }
  }
}

}  // namespace

std::int64_t row_pitch(DType type, std::int64_t cols) {
  const bool plain = traits(type).block_elements == 1;
  // Whole units of eight values.
  const std::int64_t bytes = row_bytes(type, plain ? (cols + 7) / 8 * 8 : cols);
  return (bytes + 15) / 16 * 16;
}

void pack_row(DType type, const std::byte* from, std::byte* to, std::int64_t cols) {
  const DTypeTraits& t = traits(type);
  const std::int64_t blocks = cols / t.block_elements;
  const std::int64_t bytes = blocks * t.block_bytes;
  std::memset(to + bytes, 0, static_cast<std::size_t>(row_pitch(type, cols) - bytes));
  switch (type) {
    case DType::q8_0: return gather_planes(from, to, blocks, t.block_bytes, {{2, 32}, {0, 2}});
    case DType::q4_0: return gather_planes(from, to, blocks, t.block_bytes, {{2, 16}, {0, 2}});
    case DType::q5_0: return gather_planes(from, to, blocks, t.block_bytes, {{6, 16}, {2, 4}, {0, 2}});
    case DType::q6_k: return gather_planes(from, to, blocks, t.block_bytes, {{0, 128}, {128, 64}, {192, 16}, {208, 2}});
    default: std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace fixpoint::kernels::cuda
