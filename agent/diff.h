#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::agent {

struct DiffLine {
  enum class Kind : std::uint8_t { same, removed, added, gap };
  Kind kind = Kind::same;
  std::string text;  ///< without its line end; for a gap, empty
  bool operator==(const DiffLine&) const = default;
};

/// A shortest edit from `before` to `after` by lines, with `context` unchanged lines around each change. Very long texts
/// are compared as one block behind their common ends.
[[nodiscard]] std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after, int context = 3);

/// The same as text: " ", "-", "+" before each line, "..." for gaps.
[[nodiscard]] std::string to_text(const std::vector<DiffLine>& diff);

}  // namespace fixpoint::agent
