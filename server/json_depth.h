#pragma once

#include <string_view>

namespace fixpoint::server {

/// How deep brackets nest in a JSON text, seen without building anything; those within strings do not count. A reader that
/// calls itself for each level is only let near a text whose depth is bounded.
[[nodiscard]] int json_depth(std::string_view text);

}  // namespace fixpoint::server
