#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"

namespace fixpoint::kernels::cpu {

/// Where keys and values lie. A block holds, for each KV head, its keys as sub-tiles of sixteen positions
/// [sub_tiles][head_dim][16], then its values [block_size][padded head_dim], padding zero, and the scales of both (see
/// KvSubTile): scores are computed for sixteen positions at a time and sums for sixteen elements, both without shuffles.
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

  /// The sub-tile of a context that holds a position, and the first position of one.
  [[nodiscard]] std::int32_t sub_tile_of(std::int32_t position) const {
    return position / block_size * sub_tiles + position % block_size / kLanes;
  }
  [[nodiscard]] std::int32_t first_position(std::int32_t sub_tile) const {
    return sub_tile / sub_tiles * block_size + sub_tile % sub_tiles * kLanes;
  }

  KvType type;
  std::int64_t heads;
  std::int32_t head_dim;
  std::int32_t padded_dim;        ///< head_dim up to whole vectors, or whole groups of INT4
  std::int32_t block_size;
  std::int32_t sub_tiles;         ///< in a block
  std::int64_t sub_tile_bytes;    ///< keys of sixteen positions
  std::int64_t value_row_bytes;   ///< values of a position
  std::int64_t scales;            ///< F16 numbers of a position's keys, and of its values
  std::int64_t values_at;         ///< in a block's head: after the keys
  std::int64_t key_scales_at;
  std::int64_t value_scales_at;
  std::int64_t head_bytes;
};

/// Elements of a head that can be quantised.
inline constexpr std::int64_t kLongestQuantisedHead = 1024;

/// Writes one token's keys and values, [heads][head_dim] each, into slot `slot` of a block. `table` converts plain types.
void store_token(const KernelTable& table, const KvLayout& layout, const float* keys, const float* values, std::int32_t block,
                 std::int32_t slot, std::byte* storage);

}  // namespace fixpoint::kernels::cpu
