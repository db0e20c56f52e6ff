#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sandbox/detail/privileges.h"
#include "sandbox/detail/step.h"

namespace fixpoint::sandbox::detail {

/// Who a program is and what it may do: all of its confinement that does not depend on its job.
struct TargetPlan {
  Identity identity;
  int landlock_version = 0;
  std::span<const std::uint64_t> filter;  ///< empty: no seccomp
  bool notify = false;
};

/// A job's descriptors.
struct Streams {
  int standard[3] = {-1, -1, -1};
  int questions = -1;  ///< becomes descriptor 3
  int answers = -1;    ///< becomes descriptor 4
};

struct TargetResult {
  Failure failure;
  int listener = -1;  ///< seccomp's
};

/// Puts them where a program finds them, in the caller's table, and marks all other descriptors to be closed by execve.
[[nodiscard]] Failure place_streams(const Streams& streams);

/// The steps from a fresh process to confinement, in order; seccomp's filter is the last. Neither allocates nor touches other memory.
void confine(const TargetPlan& plan, TargetResult& result);

}  // namespace fixpoint::sandbox::detail
