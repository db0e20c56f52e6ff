#include "kernels/cuda_backend.h"
#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/staging_backend.h"

namespace fixpoint::kernels {
namespace {

BackendCase cuda_case(const std::string& name, CudaProducts products) {
  return {.name = name,
          .make = [products](int) -> std::unique_ptr<Backend> {
            if (cuda_status().devices.empty()) return nullptr;
            return stage_through_device_memory(make_cuda_backend({.products = products}));
          },
          .slow = FIXPOINT_EMULATED_DEVICE != 0,
          .invariant = products == CudaProducts::exact};
}

}  // namespace

std::vector<BackendCase> backend_cases() {
  return {cuda_case("exact", CudaProducts::exact), cuda_case("fastest", CudaProducts::fastest)};
}

}  // namespace fixpoint::kernels
