#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"

namespace fixpoint::kernels::cpu {

/// Where keys and values lie. A block holds, for each KV head, its keys as sub-tiles of sixteen positions
/// [sub_tiles][head_dim][16] and then its values [block_size][padded head_dim], padding zero: scores are computed
/// for sixteen positions at a time and sums for sixteen elements, both without shuffles.
struct KvLayout {
  explicit KvLayout(const KvShape& shape);

  [[nodiscard]] std::int64_t block_bytes() const { return heads * head_bytes; }
  [[nodiscard]] const std::byte* head(const std::byte* storage, std::int32_t block, std::int64_t head_index) const {
    return storage + block * block_bytes() + head_index * head_bytes;
  }
  [[nodiscard]] std::byte* head(std::byte* storage, std::int32_t block, std::int64_t head_index) const {
    return storage + block * block_bytes() + head_index * head_bytes;
  }
  /// Sub-tile `index` of a context, of which `block` is the block it lies in.
  [[nodiscard]] KvSubTile sub_tile(const std::byte* storage, std::int32_t block, std::int64_t head_index,
                                   std::int32_t index) const;

  std::size_t type_index;   ///< into the kernel table: F32, F16, BF16
  std::int64_t element;     ///< bytes
  std::int64_t heads;
  std::int32_t head_dim;
  std::int32_t padded_dim;  ///< head_dim up to whole vectors
  std::int32_t block_size;
  std::int32_t sub_tiles;   ///< in a block
  std::int64_t key_bytes;   ///< of a block's head
  std::int64_t head_bytes;  ///< keys and values
};

}  // namespace fixpoint::kernels::cpu
