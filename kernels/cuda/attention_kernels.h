#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/kv_geometry.h"
#include "kernels/cuda/row_kernels.h"

namespace fixpoint::kernels::cuda {

/// One step's attention on the device. All pointers are to device memory.
struct AttentionInput {
  Rows q, out;  ///< [n, heads * dim]
  std::int32_t heads = 0;
  float scale = 1.0F;
  KvGeometry kv;
  const std::int32_t* block_indptr = nullptr;
  const std::int32_t* block_ids = nullptr;
  const std::int32_t* positions = nullptr;
  const AttentionTile* tiles = nullptr;
  std::int32_t num_tiles = 0;
  const AttentionTile* combine = nullptr;
  std::int32_t num_combine = 0;
  const AttentionTile* prefill = nullptr;
  std::int32_t num_prefill = 0;
  float* partials = nullptr;  ///< partial_floats(…) for the plan's slots
};

/// Floats of the partial results of `slots` places.
[[nodiscard]] std::size_t partial_floats(std::int32_t slots, std::int32_t heads, const KvGeometry& kv);

/// Causal attention over the blocks: softmax is taken online, part after part. One read of keys and values serves up to
/// kMaxTileRows query rows; `tile_rows` says how many the tiles have at most. Head dimensions up to kMaxHeadDim.
void queue_attention(const AttentionInput& input, std::int32_t tile_rows, cudaStream_t stream);

}  // namespace fixpoint::kernels::cuda
