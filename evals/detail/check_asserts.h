#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fixpoint::evals::detail {

/// The body of a check(candidate) function as a list of assertions about `entry_point`, where it is nothing but such: they
/// need no jail of their own, because their values are compared outside. Nothing for any other body.
[[nodiscard]] std::optional<std::string> check_as_asserts(std::string_view source, std::string_view entry_point);

}  // namespace fixpoint::evals::detail
