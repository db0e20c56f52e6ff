#pragma once

#include <string>

#include "agent/progress.h"

namespace fixpoint::agent {

/// What a person is given with a hand-over: the task, each round with its difference to the one before, its explanation and
/// its verdict, the best program, the smallest failing test, what was spent.
[[nodiscard]] std::string handover_markdown(const Progress& progress);
[[nodiscard]] std::string handover_json(const Progress& progress);

/// The failing test of the best attempt that is shortest to read; null where none failed.
[[nodiscard]] const FailedTest* smallest_failure(const Progress& progress);

}  // namespace fixpoint::agent
