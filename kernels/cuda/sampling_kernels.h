#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/row_kernels.h"
#include "kernels/row_choice.h"

namespace fixpoint::kernels::cuda {

/// out[i] is the token of choices[i], below 0 where its row holds NaN or +inf or nothing above -inf. `choices` and `out` [n] lie on
/// the device. A block of threads a row; a row is read once for its largest logit, and then, where it is not greedy, up to three
/// times each for top_k and top_p, once for the total that top_p is a share of, and once for the draw.
void queue_choices(Rows logits, const RowChoice* choices, std::int32_t n, std::int32_t* out, cudaStream_t stream);

}  // namespace fixpoint::kernels::cuda
