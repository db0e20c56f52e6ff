#pragma once

#include <string>
#include <vector>

#include "evals/record.h"
#include "evals/summary.h"

namespace fixpoint::evals {

/// JUnit XML: a test case for each program. What could not be judged is an error, everything else that did not pass a failure.
[[nodiscard]] std::string junit_report(const RunInfo& info, const Summary& summary, const std::vector<Record>& records);

}  // namespace fixpoint::evals
