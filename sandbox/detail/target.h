#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sandbox/detail/limits.h"
#include "sandbox/detail/privileges.h"
#include "sandbox/detail/step.h"

namespace fixpoint::sandbox::detail {

/// Everything that a program's process needs between clone and execve. Prepared by the init, because the child shares its
/// memory until then and must neither allocate nor touch anything else.
struct TargetPlan {
  int streams[3] = {-1, -1, -1};
  int questions = -1;  ///< becomes descriptor 3
  int answers = -1;    ///< becomes descriptor 4
  int executable = -1; ///< run this file; otherwise arguments[0]
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  ResourceLimits limits;
  Identity identity;
  int landlock_version = 0;
  std::span<const std::uint64_t> filter;  ///< empty: no seccomp
  bool notify = false;
};

/// Written by the child, read by the init after execve or _exit.
struct TargetResult {
  Failure failure;
  int listener = -1;  ///< seccomp's, in the descriptor table that the two share until execve
};

/// The steps from a fresh child to confinement, in order; all but the last act of starting the program.
void confine(const TargetPlan& plan, TargetResult& result);

/// In the child: confine, then execute. Returns only when a step failed.
void become_program(const TargetPlan& plan, TargetResult& result);

}  // namespace fixpoint::sandbox::detail
