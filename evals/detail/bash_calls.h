#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::evals::detail {

/// One line `[[ $(candidate ARGUMENTS) = "EXPECTED" ]]` of MultiPL-E's Bash tests.
struct BashCall {
  std::string command;   // "candidate ARGUMENTS"
  std::string expected;  // the quoted word as it stands in the file, quotes included
};

struct BashTests {
  std::string function;  // what `candidate` calls
  std::vector<BashCall> calls;
};

/// Takes the published form of the tests apart, so that each call can run in a process of its own and its output be
/// compared outside. Nothing where the text has another form.
[[nodiscard]] std::optional<BashTests> parse_bash_tests(std::string_view tests);

/// The text that a double-quoted Bash word without expansions stands for; nothing where it has some.
[[nodiscard]] std::optional<std::string> unquote_bash(std::string_view word);

}  // namespace fixpoint::evals::detail
