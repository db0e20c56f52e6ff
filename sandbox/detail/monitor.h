#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/detail/frame.h"
#include "sandbox/detail/unique_fd.h"
#include "sandbox/job.h"
#include "sandbox/verdict.h"

namespace fixpoint::sandbox::detail {

/// The service's ends of one run.
struct RunEnds {
  UniqueFd report;
  UniqueFd input;
  UniqueFd output;
  UniqueFd errors;
};

struct MonitorOptions {
  std::string_view input;
  Limits limits;
  Overflow overflow = Overflow::kill;
  bool started_ahead = false;          ///< what the process used before now is not the program's
  bool forks_uncounted = false;        ///< no pids cgroup
  bool address_space_limited = false;  ///< no memory cgroup: the limit shows as failed allocations
};

/// What one process run came to.
struct RunResult {
  Outcome outcome = InternalError{"not run"};
  Output output;
  Output errors;
  Usage usage;
  bool unheard = false;  ///< nobody ever spoke for this run: the broker died before it was started, or within its first moment
  UniqueFd box;  ///< the working directory, where LaunchFrame::keep_box asked for it; nothing can change it any more
};

/// Watches one run from its start to the moment when nothing of its program is left: feeds stdin, keeps output under its cap while it
/// is written, counts CPU time, watches the clock, kills at a limit, and decides the verdict. Each reason to kill is noted
/// before the kill, so that it is not mistaken for what follows from it.
[[nodiscard]] RunResult watch_run(RunEnds ends, const MonitorOptions& options, std::stop_token stop);

}  // namespace fixpoint::sandbox::detail
