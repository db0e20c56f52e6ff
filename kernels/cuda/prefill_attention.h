#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/attention_kernels.h"

namespace fixpoint::kernels::cuda {

/// Whether the keys and values are of a type and size that queue_prefill_attention takes: all but F32, heads of up to 128.
[[nodiscard]] bool can_prefill(const KvGeometry& kv);

/// Causal attention of the input's prefill tiles on the tensor cores. What is multiplied is F16, beside BF16 keys and values
/// BF16; sums are F32. A row's bits depend on its own context only, but they are not those of queue_attention.
void queue_prefill_attention(const AttentionInput& input, cudaStream_t stream);

}  // namespace fixpoint::kernels::cuda
