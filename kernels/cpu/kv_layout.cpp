#include "kernels/cpu/kv_layout.h"

#include <algorithm>
#include <cstring>

#include "kernels/kv_row.h"

namespace fixpoint::kernels::cpu {
namespace {

std::int32_t whole(std::int32_t n, std::int32_t unit) { return (n + unit - 1) / unit * unit; }

// Bytes of `elements` (an even number of them for INT4), without scales.
std::int64_t code_bytes(KvType type, std::int64_t elements) {
  switch (type) {
    case KvType::f32: return 4 * elements;
    case KvType::f16:
    case KvType::bf16: return 2 * elements;
    case KvType::int8:
    case KvType::fp8_e4m3: return elements;
    case KvType::int4: return elements / 2;
  }
  return 0;
}

template <class Value>
void scatter(const void* from, std::int64_t n, std::byte* to) {
  const auto* values = static_cast<const Value*>(from);
  auto* out = reinterpret_cast<Value*>(to);
  for (std::int64_t d = 0; d < n; ++d) out[d * kLanes] = values[d];
}

/// One position of one head in a block.
struct Place {
  const KvLayout& layout;
  std::byte* head;
  std::int32_t slot;

  [[nodiscard]] std::int32_t sub_tile() const { return slot / kLanes; }
  [[nodiscard]] std::int32_t lane() const { return slot % kLanes; }
  [[nodiscard]] std::byte* key_column(std::int64_t element_bytes) const {
    return head + sub_tile() * layout.sub_tile_bytes + lane() * element_bytes;
  }
  [[nodiscard]] std::byte* value_row() const { return head + layout.values_at + slot * layout.value_row_bytes; }
  [[nodiscard]] std::byte* scale_column(std::int64_t at) const {
    return head + at + 2 * (sub_tile() * layout.scales * kLanes + lane());
  }
};

void store_plain(const KernelTable& table, const Place& place, const float* keys, const float* values) {
  const KvLayout& l = place.layout;
  const auto to_kv = table.to_kv[static_cast<std::size_t>(l.type)];
  constexpr std::int64_t kAtOnce = 256;
  alignas(64) std::byte row[4 * kAtOnce];
  const std::int64_t element = code_bytes(l.type, 1);
  to_kv(values, place.value_row(), l.head_dim);
  for (std::int64_t d = 0; d < l.head_dim; d += kAtOnce) {
    const std::int64_t n = std::min(kAtOnce, l.head_dim - d);
    to_kv(keys + d, row, n);
    std::byte* column = place.key_column(element) + d * kLanes * element;
    if (element == 2) {
      scatter<std::uint16_t>(row, n, column);
    } else {
      scatter<std::uint32_t>(row, n, column);
    }
  }
}

void store_quantised(const Place& place, const float* keys, const float* values) {
  const KvLayout& l = place.layout;
  std::uint8_t codes[kLongestQuantisedHead];
  std::uint16_t scales[2 * kLongestQuantisedHead / kKvGroup];
  std::memset(codes, 0, static_cast<std::size_t>(l.padded_dim));
  quantize_kv(l.type, keys, l.head_dim, codes, scales);
  scatter<std::uint16_t>(scales, l.scales, place.scale_column(l.key_scales_at));
  auto* column = place.key_column(1);
  if (l.type == KvType::int4) {
    std::uint8_t pairs[kLongestQuantisedHead / 2];
    for (std::int32_t i = 0; i < (l.head_dim + 1) / 2; ++i) pairs[i] = static_cast<std::uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
    scatter<std::uint8_t>(pairs, (l.head_dim + 1) / 2, column);
  } else {
    scatter<std::uint8_t>(codes, l.head_dim, column);
  }

  quantize_kv(l.type, values, l.head_dim, codes, scales);
  scatter<std::uint16_t>(scales, l.scales, place.scale_column(l.value_scales_at));
  if (l.type == KvType::int4) {
    auto* row = reinterpret_cast<std::uint8_t*>(place.value_row());
    for (std::int32_t i = 0; i < l.padded_dim / 2; ++i) {
      const std::uint8_t* group = codes + i / kLanes * kKvGroup + i % kLanes;
      row[i] = static_cast<std::uint8_t>(group[0] | group[kLanes] << 4);
    }
  } else {
    std::memcpy(place.value_row(), codes, static_cast<std::size_t>(l.head_dim));
  }
}

}  // namespace

KvLayout::KvLayout(const KvShape& shape)
    : type(shape.type),
      heads(shape.num_kv_heads),
      head_dim(shape.head_dim),
      padded_dim(whole(shape.head_dim, type == KvType::int4 ? static_cast<std::int32_t>(kKvGroup) : kLanes)),
      block_size(shape.block_size),
      sub_tiles((shape.block_size + kLanes - 1) / kLanes),
      sub_tile_bytes(code_bytes(type, std::int64_t{whole(shape.head_dim, type == KvType::int4 ? 2 : 1)} * kLanes)),
      value_row_bytes(code_bytes(type, padded_dim)),
      scales(kv_scales(type, shape.head_dim)),
      values_at(sub_tiles * sub_tile_bytes),
      key_scales_at(values_at + block_size * value_row_bytes),
      value_scales_at(key_scales_at + 2 * scales * kLanes * sub_tiles),
      head_bytes(value_scales_at + 2 * scales * kLanes * sub_tiles) {}

KvSubTile KvLayout::sub_tile(const std::byte* storage, std::int32_t block, std::int64_t head_index,
                             std::int32_t index) const {
  const std::byte* base = head(storage, block, head_index);
  const std::int32_t within = index % sub_tiles;
  const std::int64_t scale_offset = 2 * scales * kLanes * within;
  return {base + within * sub_tile_bytes, base + values_at + within * kLanes * value_row_bytes, base + key_scales_at + scale_offset,
          base + value_scales_at + scale_offset, first_position(index), std::min(kLanes, block_size - within * kLanes)};
}

void store_token(const KernelTable& table, const KvLayout& layout, const float* keys, const float* values, std::int32_t block,
                 std::int32_t slot, std::byte* storage) {
  for (std::int64_t h = 0; h < layout.heads; ++h) {
    const Place place{layout, layout.head(storage, block, h), slot};
    if (is_quantised(layout.type)) {
      store_quantised(place, keys + h * layout.head_dim, values + h * layout.head_dim);
    } else {
      store_plain(table, place, keys + h * layout.head_dim, values + h * layout.head_dim);
    }
  }
}

}  // namespace fixpoint::kernels::cpu
