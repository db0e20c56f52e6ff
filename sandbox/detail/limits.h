#pragma once

#include <sys/types.h>

#include <cstdint>

#include "sandbox/detail/step.h"

namespace fixpoint::sandbox::detail {

struct ResourceLimits {
  std::uint64_t cpu_milliseconds = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t address_space_bytes = 0;  ///< 0: unlimited
  std::uint32_t processes = 0;            ///< 0: unlimited
};

/// Sets every rlimit of `process` (0: the calling one), soft and hard.
[[nodiscard]] Failure set_resource_limits(const ResourceLimits& limits, pid_t process);

}  // namespace fixpoint::sandbox::detail
