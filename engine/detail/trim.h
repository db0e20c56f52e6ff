#pragma once

#include <string_view>

namespace fixpoint::engine::detail {

/// Whitespace as Python's str.strip sees it, which is what chat templates trim with: White_Space and U+001C to U+001F.
[[nodiscard]] std::string_view trim_start(std::string_view text);
[[nodiscard]] std::string_view trim_end(std::string_view text);

}  // namespace fixpoint::engine::detail
