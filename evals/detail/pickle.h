#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace fixpoint::evals::detail {

/// What a pickle of plain text holds: one string, or a dict from strings to strings. Every other opcode (objects, calls,
/// imports) is refused, so nothing a pickle says is ever executed.
struct PickledText {
  std::string text;
  std::map<std::string, std::string> members;  // of a dict
};
[[nodiscard]] tl::expected<PickledText, std::string> read_pickled_text(std::string_view bytes);

}  // namespace fixpoint::evals::detail
