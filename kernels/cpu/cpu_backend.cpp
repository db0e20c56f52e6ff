#include <stdexcept>

#include "kernels/backend.h"

namespace fixpoint::kernels {

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options) {
  if (options.isa == CpuIsa::avx2 || options.isa == CpuIsa::avx512) {
    throw std::runtime_error("this build has no kernels for the instructions that were asked for");
  }
  return make_reference_backend();
}

}  // namespace fixpoint::kernels
