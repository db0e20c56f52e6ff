#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cuda/handles.h"
#include "kernels/tensor.h"

namespace fixpoint::kernels::cuda {

/// out[i, r] = x[i, :] . w[r, :] (+ bias[r]); x and w are of one type, F32 or BF16, sums are F32. Strides in elements.
struct GemmCall {
  DType type = DType::f32;
  bool tf32 = false;  ///< F32 operands may be rounded to 10 bits of mantissa
  const void* w = nullptr;
  std::int64_t w_stride = 0;
  const void* x = nullptr;
  std::int64_t x_stride = 0;
  const float* bias = nullptr;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  std::int32_t n = 0, rows = 0, cols = 0;
};

/// Matrix products of many rows. cuBLASLt on a device; plain loops where the kernels are emulated.
class Gemm {
 public:
  virtual ~Gemm() = default;
  virtual void multiply(const GemmCall& call) = 0;
};

/// Throws where the library cannot be loaded. `stream` outlives it.
[[nodiscard]] std::unique_ptr<Gemm> make_gemm(const Stream& stream);

}  // namespace fixpoint::kernels::cuda
