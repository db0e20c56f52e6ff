#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"

namespace fixpoint::kernels::cuda {

/// Largest head_dim: a warp's lanes hold eight elements each.
inline constexpr std::int32_t kMaxHeadDim = 256;

/// Keys and values in device memory: [block][key, value][kv_head][slot][padded_dim], so that a head's tokens of a block are
/// consecutive and a block is one piece to copy. Rows are padded to 8 elements with zeros: 16-byte loads are aligned.
struct KvGeometry {
  std::byte* data = nullptr;
  KvType type = KvType::f16;
  std::int32_t num_blocks = 0, block_size = 0, heads = 0, dim = 0, padded_dim = 0;

  KvGeometry() = default;
  KvGeometry(const KvShape& shape, std::byte* storage)
      : data(storage),
        type(shape.type),
        num_blocks(shape.num_blocks),
        block_size(shape.block_size),
        heads(shape.num_kv_heads),
        dim(shape.head_dim),
        padded_dim((shape.head_dim + 7) / 8 * 8) {}

  [[nodiscard]] std::size_t block_bytes() const {
    const std::size_t element = type == KvType::f32 ? 4 : 2;
    return std::size_t{2} * static_cast<std::size_t>(heads) * static_cast<std::size_t>(block_size) *
           static_cast<std::size_t>(padded_dim) * element;
  }
};

}  // namespace fixpoint::kernels::cuda
