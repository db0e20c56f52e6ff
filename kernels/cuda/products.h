#pragma once

#include <memory>

#include "kernels/cuda/device_weight.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/row_kernels.h"
#include "kernels/cuda_backend.h"

namespace fixpoint::kernels::cuda {

/// Multiplies with weights: by kernels of our own or by cuBLASLt, see CudaProducts. Owns the memory for converted operands.
class Products {
 public:
  Products(const Stream& stream, CudaProducts kind) : stream_(stream), kind_(kind) {}
  void multiply(const Rows& x, const DeviceWeight& w, const float* bias, const Rows& out);
  /// Counts how often memory that a recorded graph may hold has moved.
  [[nodiscard]] int moves() const { return x_bf16_.moves() + unpacked_.moves(); }

 private:
  void multiply_part(const Rows& x, const DeviceWeight::Part& part, const float* bias, const Rows& out);
  [[nodiscard]] Gemm& gemm();

  const Stream& stream_;
  const CudaProducts kind_;
  std::unique_ptr<Gemm> gemm_;  // made when first needed: the library takes a second to load
  DeviceMemory x_bf16_, unpacked_;
};

}  // namespace fixpoint::kernels::cuda
