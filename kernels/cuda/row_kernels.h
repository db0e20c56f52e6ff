#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/kv_geometry.h"

namespace fixpoint::kernels::cuda {

/// F32 rows on the device, `stride` floats apart.
struct Rows {
  float* data;
  std::int64_t stride;
  std::int32_t rows, cols;
};

// What Backend's operations of these names do; each only queues.
void queue_rms_norm(Rows x, const float* weight, float eps, Rows out, cudaStream_t stream);
void queue_add_rms_norm(Rows residual, Rows delta, const float* weight, float eps, Rows out, cudaStream_t stream);
void queue_add(Rows x, Rows delta, cudaStream_t stream);
void queue_swiglu(Rows gate_up, Rows out, cudaStream_t stream);
/// rows[i] < 0 leaves out[i, :] alone.
void queue_gather(Rows x, const std::int32_t* rows, Rows out, cudaStream_t stream);

/// Weights on the device; null: heads stay as they are.
struct HeadNormView {
  const float* q = nullptr;
  const float* k = nullptr;
  float eps = 0.0F;
};
struct RopeView {
  const float* inv_freq;
  std::int32_t pairs;
  float magnitude;
  bool adjacent;
};
/// Angles in double precision. `slots[i]` is block * block_size + place in the block; below 0, token i stays as it was.
void queue_rotate_and_store(Rows q, Rows k, Rows v, const HeadNormView& norm, const RopeView& rope,
                            const std::int32_t* positions, const std::int32_t* slots, const KvGeometry& kv,
                            cudaStream_t stream);

}  // namespace fixpoint::kernels::cuda
