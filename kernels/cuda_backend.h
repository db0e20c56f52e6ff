#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace fixpoint::kernels {

/// Which matrix products the CUDA backend uses.
enum class CudaProducts : std::uint8_t {
  exact,    ///< kernels whose sums have one order for any number of rows: keeps Backend's promise of exactness
  fastest,  ///< those for up to 8 rows, cuBLASLt above: a row's last bits then depend on how many rows share its step
};

struct CudaOptions {
  int device = 0;
  CudaProducts products = CudaProducts::exact;
  bool graphs = true;  ///< record decode steps and start each with one call
};

/// What the program can use of CUDA on this machine.
struct CudaStatus {
  std::vector<std::string> devices;  ///< "NVIDIA H200, 139 GiB, sm_90", by number
  std::string reason;                ///< why there are none
};

[[nodiscard]] CudaStatus cuda_status();

/// Throws std::runtime_error where the program was built without CUDA or the device cannot be used.
[[nodiscard]] std::unique_ptr<Backend> make_cuda_backend(const CudaOptions& options = {});

}  // namespace fixpoint::kernels
