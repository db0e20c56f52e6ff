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

/// Those rlimits of the calling process, soft and hard, that are the same for every program; makes room for the others.
[[nodiscard]] Failure set_usual_limits();

/// The others. A program's filter allows that; to set those of another process would need a right that root may lack.
[[nodiscard]] Failure set_resource_limits(const ResourceLimits& limits);

}  // namespace fixpoint::sandbox::detail
