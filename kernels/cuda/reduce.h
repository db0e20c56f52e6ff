#pragma once

#include <cuda_platform/platform.h>

#include <cstdint>

namespace fixpoint::kernels::cuda {

/// Threads of a block that works on one row.
inline constexpr int kRowThreads = 256;

inline __device__ float warp_sum(float value) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(kAllLanes, value, mask);
  return value;
}

inline __device__ float warp_max(float value) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, mask));
  return value;
}

inline __device__ std::int32_t warp_max(std::int32_t value) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    const std::int32_t other = __shfl_xor_sync(kAllLanes, value, mask);
    if (other > value) value = other;
  }
  return value;
}

/// The sum over a block of kRowThreads threads, the same bits in each; `partial` holds a value per warp.
inline __device__ float block_sum(float value, SharedArray<float> partial) {
  const int thread = static_cast<int>(threadIdx.x);
  value = warp_sum(value);
  if (thread % kWarpSize == 0) partial[thread / kWarpSize] = value;
  __syncthreads();
  float sum = 0.0F;
  for (int warp = 0; warp < kRowThreads / kWarpSize; ++warp) sum += partial[warp];
  __syncthreads();
  return sum;
}

/// Sums each of `count` values over groups of `lanes` neighbouring lanes, with about one shuffle a value: each step adds the
/// halves of the values that the two lanes swap. A lane ends with the sum of value `lane % lanes / (lanes / count)` in
/// values[0]. The order of the additions does not depend on `count`.
template <int lanes, int count>
__device__ void sum_over_lanes(float (&values)[count], int lane) {
  static_assert(count <= lanes, "more values than lanes");
  int left = count;
#pragma unroll
  for (int mask = lanes / 2; mask > 0; mask /= 2) {
    if (left > 1) {
      left /= 2;
      const bool upper = (lane & mask) != 0;
#pragma unroll
      for (int i = 0; i < count / 2; ++i) {
        if (i < left) {
          const float given = upper ? values[i] : values[i + left];
          const float kept = upper ? values[i + left] : values[i];
          values[i] = kept + __shfl_xor_sync(kAllLanes, given, mask);
        }
      }
    } else {
      values[0] += __shfl_xor_sync(kAllLanes, values[0], mask);
    }
  }
}

}  // namespace fixpoint::kernels::cuda
