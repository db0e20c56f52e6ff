#pragma once

#include <optional>
#include <string_view>
#include <utility>

namespace fixpoint::engine::detail {

/// The two pieces of a merge as files write it, "a b". The left piece is never empty, so a space at the start belongs to it.
[[nodiscard]] inline std::optional<std::pair<std::string_view, std::string_view>> split_merge(std::string_view merge) {
  const auto space = merge.find(' ', 1);
  if (merge.empty() || space == std::string_view::npos || space + 1 == merge.size()) return std::nullopt;
  return std::pair{merge.substr(0, space), merge.substr(space + 1)};
}

}  // namespace fixpoint::engine::detail
