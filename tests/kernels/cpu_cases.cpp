#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels {
namespace {

BackendCase cpu_case(const std::string& name, CpuIsa isa) {
  return {.name = name,
          .make = [isa](int threads) -> std::unique_ptr<Backend> {
            try {
              return make_cpu_backend({threads, isa});
            } catch (const std::runtime_error&) {
              return nullptr;
            }
          },
          .threads = 2};
}

}  // namespace

std::vector<BackendCase> backend_cases() {
  return {{.name = "reference", .make = [](int) { return make_reference_backend(); }, .exact = true, .slow = true},
          cpu_case("portable", CpuIsa::portable),
          cpu_case("avx2", CpuIsa::avx2),
          cpu_case("avx512", CpuIsa::avx512)};
}

}  // namespace fixpoint::kernels
