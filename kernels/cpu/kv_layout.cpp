#include "kernels/cpu/kv_layout.h"

#include <algorithm>

namespace fixpoint::kernels::cpu {

KvLayout::KvLayout(const KvShape& shape)
    : type_index(shape.dtype == DType::f32 ? 0 : shape.dtype == DType::f16 ? 1 : 2),
      element(shape.dtype == DType::f32 ? 4 : 2),
      heads(shape.num_kv_heads),
      head_dim(shape.head_dim),
      padded_dim((shape.head_dim + kLanes - 1) / kLanes * kLanes),
      block_size(shape.block_size),
      sub_tiles((shape.block_size + kLanes - 1) / kLanes),
      key_bytes(std::int64_t{sub_tiles} * head_dim * kLanes * element),
      head_bytes(key_bytes + std::int64_t{block_size} * padded_dim * element) {}

KvSubTile KvLayout::sub_tile(const std::byte* storage, std::int32_t block, std::int64_t head_index,
                             std::int32_t index) const {
  const std::byte* base = head(storage, block, head_index);
  const std::int32_t within = index % sub_tiles;
  const std::int64_t offset = std::int64_t{within} * kLanes * element;
  return {base + offset * head_dim, base + key_bytes + offset * padded_dim,
          index / sub_tiles * block_size + within * kLanes, std::min(kLanes, block_size - within * kLanes)};
}

}  // namespace fixpoint::kernels::cpu
