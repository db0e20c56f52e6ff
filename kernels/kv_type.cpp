#include "kernels/kv_type.h"

#include <algorithm>

namespace fixpoint::kernels {
namespace {

constexpr std::array<std::string_view, kKvTypes.size()> kNames{"F32", "F16", "BF16", "INT8", "FP8", "INT4"};

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

std::string_view to_string(KvType type) { return kNames[static_cast<std::size_t>(type)]; }

std::optional<KvType> parse_kv_type(std::string_view name) {
  for (const KvType type : kKvTypes) {
    if (std::ranges::equal(name, to_string(type), {}, upper)) return type;
  }
  return std::nullopt;
}

std::int64_t kv_scales(KvType type, std::int64_t head_dim) {
  if (!is_quantised(type)) return 0;
  return type == KvType::int4 ? 2 * ((head_dim + kKvGroup - 1) / kKvGroup) : 1;
}

std::int64_t kv_row_bytes(KvType type, std::int64_t head_dim) {
  const std::int64_t scales = 2 * kv_scales(type, head_dim);
  switch (type) {
    case KvType::f32: return 4 * head_dim;
    case KvType::f16:
    case KvType::bf16: return 2 * head_dim;
    case KvType::int8:
    case KvType::fp8_e4m3: return head_dim + scales;
    case KvType::int4: return (head_dim + 1) / 2 + scales;
  }
  return 0;
}

}  // namespace fixpoint::kernels
