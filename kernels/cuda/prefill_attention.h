#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/attention_kernels.h"

namespace fixpoint::kernels::cuda {

/// Whether the keys and values are of a type and size that queue_prefill_attention takes: 16-bit floats, heads of up to 128.
[[nodiscard]] bool can_prefill(const KvGeometry& kv);

/// Causal attention of the input's prefill tiles on the tensor cores. Queries and weights are rounded to the type of the keys
/// and values, sums are F32. A row's bits depend on its own context only, but they are not those of queue_attention.
void queue_prefill_attention(const AttentionInput& input, cudaStream_t stream);

}  // namespace fixpoint::kernels::cuda
