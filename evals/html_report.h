#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evals/record.h"
#include "evals/summary.h"

namespace fixpoint::evals {

/// Another run over the same tasks, drawn beside this one.
struct Beside {
  std::string name;  // in the curves' legend
  Summary summary;
};

/// One page that needs nothing else: the numbers, curves, rounds, failures by kind, and each task with its rounds and the
/// differences between them. Every number in an element with data-field is the summary's value of that name.
[[nodiscard]] std::string html_report(const RunInfo& info, const Summary& summary, const std::vector<Record>& records,
                                      const std::optional<Beside>& beside = std::nullopt);

}  // namespace fixpoint::evals
