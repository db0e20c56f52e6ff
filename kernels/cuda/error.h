#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace fixpoint::kernels::cuda {

/// A call of the CUDA runtime or of cuBLASLt that failed: "cudaMalloc (device_memory.cpp:12): cudaErrorMemoryAllocation, out
/// of memory".
class CudaError : public std::runtime_error {
 public:
  CudaError(const std::string& call, const std::string& what, const std::source_location& place);
};

/// Throws CudaError unless `result` is success. `call` names what was called, for the message.
void check(cudaError_t result, const char* call, const std::source_location& place = std::source_location::current());

}  // namespace fixpoint::kernels::cuda
