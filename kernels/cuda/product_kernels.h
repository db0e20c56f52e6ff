#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/block_layout.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/tensor.h"

namespace fixpoint::kernels::cuda {

/// Rows of x that one pass over a weight serves.
inline constexpr std::int32_t kProductRows = 8;

/// out[i, r] = x[i, :] . w[r, :] + bias[r], with every element summed in one order: F32 activations, weights unpacked in
/// registers, a warp a row of w. Reads w once per kProductRows rows of x. `bias` may be null.
void queue_row_products(DType type, const MatrixView& w, Rows x, const float* bias, Rows out, cudaStream_t stream);

/// out[i, :] = w[tokens[i] - first_row, :] for the tokens whose row lies in w; the other rows are left alone.
void queue_embed(DType type, const MatrixView& w, std::int32_t first_row, const std::int32_t* tokens, Rows out, cudaStream_t stream);

/// Rows first..first + count of w as F32 or BF16, contiguous at `out`, `out_cols` elements apart.
void queue_dequantize(DType type, const MatrixView& w, std::int32_t first, std::int32_t count, DType out_type, void* out,
                      std::int64_t out_cols, cudaStream_t stream);

/// F32 to BF16, rows `out_cols` elements apart.
void queue_to_bf16(Rows x, std::uint16_t* out, std::int64_t out_cols, cudaStream_t stream);

}  // namespace fixpoint::kernels::cuda
