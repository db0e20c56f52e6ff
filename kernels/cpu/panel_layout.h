#pragma once

#include <cstdint>

#include "kernels/tensor.h"

/// A panel: sixteen outputs of one matrix, so that one register holds the same column of all sixteen.
///
/// Plain types: [cols][16] values; BF16 for machines with its dot product: [cols / 2][16][2].
/// Block types: the codes of all blocks of 32 columns, then the scales of all blocks.
///   Codes of a block: eight groups of four columns, a group being [16][4] bytes. Four bits a code: group 2i in the low
///   and 2i + 1 in the high nibbles of 64 bytes i. Q5 adds 64 bytes: bit g of a byte is the fifth bit in group g.
///   Q6 adds 128 bytes: bits 2g, 2g + 1 of the first 64 bytes are for group g, of the second for group 4 + g.
///   Q8_0 codes have 128 added.
///   Scales: F16 d[16] (and m[16]) a block; K-quants, for 256 columns: F16 d[16] (and dmin[16]), then for each of eight
///   blocks its scales [16] and minima [16] as bytes (Q6_K: its two scales [2][16]).
/// The bytes per weight are those of the file; decoding is exact.
/// Panels are kept in files (Backend::packed_form): whoever changes a byte of them changes kPanelForm.
namespace fixpoint::kernels::cpu {

constexpr const char* kPanelForm = "cpu-panels1";

struct PanelLayout {
  std::int64_t block_cols;        ///< columns that share one entry of the scales; 1 for plain types
  std::int64_t code_bytes;        ///< for 32 columns (block types) or one column (plain types)
  std::int64_t scale_bytes;       ///< for `block_cols` columns
};

[[nodiscard]] constexpr PanelLayout panel_layout(DType type) {
  switch (type) {
    case DType::f32: return {1, 64, 0};
    case DType::f16:
    case DType::bf16: return {1, 32, 0};
    case DType::q8_0: return {32, 512, 32};
    case DType::q4_0: return {32, 256, 32};
    case DType::q4_1: return {32, 256, 64};
    case DType::q5_0: return {32, 320, 32};
    case DType::q5_1: return {32, 320, 64};
    case DType::q4_k: return {256, 256, 320};
    case DType::q5_k: return {256, 320, 320};
    case DType::q6_k: return {256, 384, 288};
  }
  return {1, 0, 0};
}

/// Bytes from one panel to the next: whole cache lines.
[[nodiscard]] constexpr std::int64_t panel_bytes(DType type, std::int64_t cols) {
  const PanelLayout l = panel_layout(type);
  const std::int64_t plain = (cols + 1) / 2 * 2 * l.code_bytes;
  const std::int64_t blocks = cols / 32 * l.code_bytes + cols / l.block_cols * l.scale_bytes;
  return ((l.block_cols == 1 ? plain : blocks) + 63) / 64 * 64;
}

}  // namespace fixpoint::kernels::cpu
