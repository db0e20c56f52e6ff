#include "kernels/cuda/error.h"

#include <string_view>

namespace fixpoint::kernels::cuda {
namespace {

std::string message(const std::string& call, const std::string& what, const std::source_location& place) {
  std::string_view file = place.file_name();
  file.remove_prefix(file.find_last_of('/') + 1);
  return call + " (" + std::string(file) + ":" + std::to_string(place.line()) + "): " + what;
}

}  // namespace

CudaError::CudaError(const std::string& call, const std::string& what, const std::source_location& place)
    : std::runtime_error(message(call, what, place)) {}

void check(cudaError_t result, const char* call, const std::source_location& place) {
  if (result == cudaSuccess) return;
  throw CudaError(call, std::string(cudaGetErrorName(result)) + ", " + cudaGetErrorString(result), place);
}

}  // namespace fixpoint::kernels::cuda
