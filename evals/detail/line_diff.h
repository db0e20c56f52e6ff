#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::evals::detail {

struct DiffLine {
  char mark = ' ';  // ' ' in both, '-' only before, '+' only after
  std::string text;
};

/// A shortest line difference (longest common subsequence). Beyond 2000 lines on a side: all of one, then all of the other.
[[nodiscard]] std::vector<DiffLine> line_diff(std::string_view before, std::string_view after);

}  // namespace fixpoint::evals::detail
