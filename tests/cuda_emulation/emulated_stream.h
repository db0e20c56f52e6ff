#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <vector>

namespace fixpoint::cuda_emulation {

using Work = std::function<void()>;

/// Work in order; while capturing, work goes into the graph instead.
struct EmulatedStream {
  std::vector<Work> pending;
  EmulatedGraph* capture = nullptr;

  void add(Work work);
  /// Does all of it. Throws what a kernel did wrong.
  void finish();
};

struct EmulatedEvent {
  EmulatedStream* recorded = nullptr;
};

struct EmulatedGraph {
  std::vector<Work> work;
  std::size_t device_bytes = 0;  ///< that it takes where it can be launched
};

/// Queues `kernel`, called once by every thread of the grid.
void launch(dim3 grid, dim3 block, std::size_t shared_bytes, EmulatedStream* stream, std::function<void()> kernel);

/// Device memory that has been allocated and not been freed.
[[nodiscard]] std::size_t allocated_bytes();
/// Page-locked memory of the host, likewise.
[[nodiscard]] std::size_t pinned_bytes();
/// What the emulated device has; `cudaMalloc` fails beyond it.
void set_device_bytes(std::size_t bytes);
/// 0: as on a machine whose driver finds nothing.
void set_device_count(int count);

}  // namespace fixpoint::cuda_emulation
