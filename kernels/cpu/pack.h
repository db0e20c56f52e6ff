#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tensor.h"

/// Rows of a file's matrix to panels (panel_layout.h), and one row back.
namespace fixpoint::kernels::cpu {

/// Up to sixteen rows of one matrix.
struct PanelRows {
  DType type;
  const std::byte* first_row;
  int rows;
  std::int64_t cols;
  bool bf16_pairs;
};

/// Writes one panel; `to` is zeroed memory of panel_bytes. Reads the rows and nothing past them.
void pack_panel(const PanelRows& rows, std::byte* to);

/// The values of row `lane` of a panel.
void unpack_row(DType type, bool bf16_pairs, const std::byte* panel, int lane, std::int64_t cols, float* to);

}  // namespace fixpoint::kernels::cpu
