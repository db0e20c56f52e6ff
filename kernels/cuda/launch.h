#pragma once

#include <cuda_platform/platform.h>

#include <source_location>
#include <type_traits>

#include "kernels/cuda/error.h"

namespace fixpoint::kernels::cuda {

/// A kernel's grid and blocks, its dynamic shared memory and its stream. `name` and `place` are for error messages.
struct Launch {
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
  const char* name;
  std::source_location place = std::source_location::current();
};

/// Queues `kernel(arguments…)`: on a device, or, where the sources are compiled over the emulation, on that. An empty grid
/// is no work.
template <class... Parameters, class... Arguments>
void launch(const Launch& how, void (*kernel)(Parameters...), Arguments... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "parameters are copied to the device");
  if (how.grid.x == 0 || how.grid.y == 0 || how.grid.z == 0) return;
  check(start_kernel<Parameters...>(how.grid, how.block, how.shared_bytes, how.stream, kernel, Parameters(arguments)...), how.name,
        how.place);
}

}  // namespace fixpoint::kernels::cuda
