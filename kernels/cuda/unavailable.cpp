// Linked where the program is built without CUDA.
#include <stdexcept>

#include "kernels/cuda_backend.h"

namespace fixpoint::kernels {

CudaStatus cuda_status() { return {{}, "this program was built without CUDA"}; }

std::unique_ptr<Backend> make_cuda_backend(const CudaOptions&) {
  throw std::runtime_error("cuda: " + cuda_status().reason);
}

}  // namespace fixpoint::kernels
