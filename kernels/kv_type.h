#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fixpoint::kernels {

/// How keys and values are stored. The first three are plain. In the others a token's keys (and its values) of one KV head
/// are quantised on their own, so that what is stored depends on that token alone:
///  - int8:      codes -127..127, one F16 scale of max|x| / 127; value = scale * code
///  - fp8_e4m3:  OCP E4M3 (FN: no infinities, largest 448), one F16 scale of max|x| / 448; value = scale * number
///  - int4:      codes 0..15; for each 32 elements an F16 scale of (max - min) / 15 and an F16 offset, which is the minimum:
///               value = offset + scale * code. A head's last elements may be fewer than 32.
/// The offset is worth its bit a value: a symmetric INT4 of the same 32 elements errs by a quarter more on normal numbers
/// and by 70 % more where a channel is an outlier, as in keys.
enum class KvType : std::uint8_t { f32, f16, bf16, int8, fp8_e4m3, int4 };
inline constexpr std::array kKvTypes{KvType::f32,  KvType::f16,      KvType::bf16,
                                     KvType::int8, KvType::fp8_e4m3, KvType::int4};
inline constexpr std::int64_t kKvGroup = 32;  ///< elements that an INT4 scale is for

/// "F32", "F16", "BF16", "INT8", "FP8", "INT4".
[[nodiscard]] std::string_view to_string(KvType type);
/// The inverse, in any case of letters.
[[nodiscard]] std::optional<KvType> parse_kv_type(std::string_view name);

[[nodiscard]] constexpr bool is_quantised(KvType type) { return type >= KvType::int8; }
/// F16 numbers (scales, and offsets) beside the codes of `head_dim` elements; 0 for the plain types.
[[nodiscard]] std::int64_t kv_scales(KvType type, std::int64_t head_dim);
/// Bytes of one token's keys (or values) of one KV head, scales included.
[[nodiscard]] std::int64_t kv_row_bytes(KvType type, std::int64_t head_dim);

}  // namespace fixpoint::kernels
