#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/backend.h"

namespace fixpoint::kernels::cuda {

/// Largest head_dim: a warp's lanes hold eight elements each.
inline constexpr std::int32_t kMaxHeadDim = 256;

/// Keys and values in device memory: rows [block][key, value][kv_head][slot] of a head's elements, so that a head's tokens of a
/// block are consecutive and a block is one piece to copy. Rows are padded to 8 elements: loads of eight are aligned. The scales
/// of quantised rows come after all blocks, in the same order.
struct KvGeometry {
  std::byte* data = nullptr;
  std::uint16_t* scales = nullptr;  ///< [row][row_scales] F16
  KvType type = KvType::f16;
  std::int32_t num_blocks = 0, block_size = 0, heads = 0, dim = 0, padded_dim = 0;
  std::int32_t row_bytes = 0, row_scales = 0;

  KvGeometry() = default;
  KvGeometry(const KvShape& shape, std::byte* storage)
      : data(storage),
        type(shape.type),
        num_blocks(shape.num_blocks),
        block_size(shape.block_size),
        heads(shape.num_kv_heads),
        dim(shape.head_dim),
        padded_dim((shape.head_dim + 7) / 8 * 8),
        row_bytes(padded_dim * element_bits(shape.type) / 8),
        row_scales(static_cast<std::int32_t>(kv_scales(shape.type, shape.head_dim))) {
    if (storage != nullptr) scales = reinterpret_cast<std::uint16_t*>(storage + static_cast<std::size_t>(num_blocks) * block_bytes());
  }

  [[nodiscard]] std::size_t block_rows() const {
    return std::size_t{2} * static_cast<std::size_t>(heads) * static_cast<std::size_t>(block_size);
  }
  /// Of a block's elements and of its scales.
  [[nodiscard]] std::size_t block_bytes() const { return block_rows() * static_cast<std::size_t>(row_bytes); }
  [[nodiscard]] std::size_t block_scale_bytes() const { return block_rows() * static_cast<std::size_t>(row_scales) * sizeof(std::uint16_t); }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(num_blocks) * (block_bytes() + block_scale_bytes()); }

 private:
  static constexpr std::int32_t element_bits(KvType type) {
    switch (type) {
      case KvType::f32: return 32;
      case KvType::f16:
      case KvType::bf16: return 16;
      case KvType::int8:
      case KvType::fp8_e4m3: return 8;
      case KvType::int4: return 4;
    }
    return 0;
  }
};

}  // namespace fixpoint::kernels::cuda
