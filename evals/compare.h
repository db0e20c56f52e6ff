#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "evals/result_log.h"
#include "evals/score.h"

namespace fixpoint::evals {

/// Two runs over the same tasks, task by task (a task passes where any of its programs does).
struct Comparison {
  RunInfo first;
  RunInfo second;
  std::int64_t tasks = 0;   // in both
  std::int64_t both = 0;
  std::int64_t only_first = 0;
  std::int64_t only_second = 0;
  std::int64_t neither = 0;
  double p_value = 1;       // exact McNemar: how likely such a difference is by luck
  std::vector<std::string> lost;    // passed in the first only
  std::vector<std::string> gained;  // passed in the second only
  std::vector<std::string> warnings;  // what makes the two hard to compare (another prompt, other data)
  bool complete = true;               // both were run to their end: of a stopped one only the tasks that it came to are in here

  /// Percentage points of the tasks by which the second passes fewer; below 0 where it passes more.
  [[nodiscard]] double points_lost() const { return 100.0 * static_cast<double>(only_first - only_second) / static_cast<double>(tasks); }
};

/// An error where the two have no task in common.
[[nodiscard]] tl::expected<Comparison, std::string> compare(const StoredRun& first, const StoredRun& second);

[[nodiscard]] std::string to_text(const Comparison& comparison);
[[nodiscard]] std::string to_json(const Comparison& comparison);

}  // namespace fixpoint::evals
