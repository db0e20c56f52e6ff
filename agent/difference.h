#pragma once

#include <string>
#include <string_view>

#include "sandbox/value.h"

namespace fixpoint::agent {

/// How a value differs from the expected one, in words that the two do not say themselves: "got is reversed", "each element
/// of got is 3 too small", "got lacks 1 element: [5]". Empty where there is nothing to say. Numbers are integers up to 10^15;
/// texts and lists of numbers or texts up to 1,000 long are compared, others by their kind and length alone.
///
/// The words are part of the prompts (kPromptVersion), and models/recipe/difference.py has them, too.
[[nodiscard]] std::string difference(const sandbox::Value& expected, const sandbox::Value& got);

/// The same of two values as Python literals; empty where one of them is none.
[[nodiscard]] std::string difference_of_literals(std::string_view expected, std::string_view got);

/// The same of what a program should have printed and what it printed, white space at their ends aside: as numbers where both
/// are, else as texts.
[[nodiscard]] std::string difference_of_outputs(std::string_view expected, std::string_view got);

}  // namespace fixpoint::agent
