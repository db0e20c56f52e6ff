#pragma once

#include <cuda_platform/platform.h>

namespace fixpoint::kernels::cuda {

inline __device__ float minus_infinity() { return -INFINITY; }

/// Merges running sums with those of the positions after them: maximum, sum of weights, weighted values.
struct Scales {
  float before, after;
};
inline __device__ Scales merge_scales(float& maximum, float other) {
  const float highest = fmaxf(maximum, other);
  const Scales scales{maximum == highest ? 1.0F : fast_exp(maximum - highest), other == highest ? 1.0F : fast_exp(other - highest)};
  maximum = highest;
  return scales;
}

}  // namespace fixpoint::kernels::cuda
