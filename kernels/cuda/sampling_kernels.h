#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cuda/row_kernels.h"
#include "kernels/row_choice.h"

namespace fixpoint::kernels::cuda {

/// Memory on the device that queue_choices works in, however many rows there are.
[[nodiscard]] std::size_t choice_work_bytes();

/// out[i] is the token of choices[i], below 0 where its row holds NaN or +inf or nothing above -inf. `on_device` are the
/// same choices; they, `work` and `out` [choices] lie on the device. Where rows are few and long, several blocks of threads
/// share one. A row is read once for its largest logit and then, where it is not greedy, three times each for top_k and
/// top_p and once for the draw.
void queue_choices(Rows logits, std::span<const RowChoice> choices, const RowChoice* on_device, std::byte* work,
                   std::int32_t* out, cudaStream_t stream);

}  // namespace fixpoint::kernels::cuda
