#pragma once

#include <cstdint>

#include "sandbox/detail/step.h"

namespace fixpoint::sandbox::detail {

struct ResourceLimits {
  std::uint64_t cpu_milliseconds = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t address_space_bytes = 0;  ///< 0: unlimited
  std::uint32_t processes = 0;            ///< 0: unlimited
};

/// RLIMIT_NPROC for a program of so many processes. It also counts forks that are about to fail: where a cgroup counts (`counted`), whose
/// refusals make the verdict, this one stands well behind it.
[[nodiscard]] inline std::uint32_t process_rlimit(std::uint32_t processes, bool counted) { return counted ? 2 * processes + 64 : processes + 1; }

/// Raises the hard limits that come with a job, where the service's own are lower and that may be done: later nobody may any more.
void make_room_for_limits();

/// Those rlimits of the calling process, soft and hard, that are the same for every program.
[[nodiscard]] Failure set_usual_limits();

/// The others. A program's filter allows that; to set those of another process would need a right that root may lack.
[[nodiscard]] Failure set_resource_limits(const ResourceLimits& limits);

}  // namespace fixpoint::sandbox::detail
