#pragma once

#include <string>
#include <string_view>

#include "agent/round.h"

namespace fixpoint::agent {

struct Extracted {
  ExtractKind kind = ExtractKind::none;
  std::string program;      ///< LF line ends, one at the end; empty with kind none
  std::string explanation;  ///< the words around it, trimmed
};

/// Finds the program in a model's answer. Fenced blocks of the task's language come first (the last one that defines the
/// entry point, else the last), then other fences, then code without a fence. Never throws anything away that might be
/// the program: with no better idea the whole text is it. Linear in the text; `text` may be anything.
/// `header` is the entry point's own first line (find_header), for answers that are a function's body alone; may be empty.
[[nodiscard]] Extracted extract(std::string_view text, std::string_view language, std::string_view entry_point,
                                std::string_view header = {});

/// "def f(xs: list) -> int:" where the statement shows a Python function's head, in code or in `f(xs)` form.
[[nodiscard]] std::string find_header(std::string_view statement, std::string_view entry_point);

/// The `assert` statements in an answer (Python), each with its continuation lines; at most `limit`.
[[nodiscard]] std::vector<std::string> extract_assertions(std::string_view text, std::size_t limit);

/// A key that is equal for programs that differ only in comments, blank lines, trailing blanks and line ends.
[[nodiscard]] std::string program_key(std::string_view program, std::string_view language);

/// A key that is equal for failures that look the same: the kind, the first failing test and what it gave, without
/// addresses and line numbers.
[[nodiscard]] std::string failure_key(const Judgement& judgement);

}  // namespace fixpoint::agent
