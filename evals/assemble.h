#pragma once

#include <string>
#include <string_view>

#include "evals/benchmark.h"
#include "evals/samples.h"

/// From what somebody wrote to the source that is run. Pure text.
namespace fixpoint::evals {

/// A program that is ready for the task's tests, without them.
struct Program {
  std::string source;
  bool closed = false;  // a whole program: a tail that begins by closing the function must not close it again
};

/// The program that a sample stands for, by its benchmark's own rules: a completion follows the prompt (and, in
/// MultiPL-E, ends at the first stop token); a solution is taken as it is.
[[nodiscard]] Program assemble(const Task& task, const Sample& sample);

/// The program that a model's whole answer stands for. Python answers may lean on the prompt's imports and helpers, so
/// these come first; C++, Java and Rust answers lose a main of their own.
[[nodiscard]] Program assemble_answer(const Task& task, std::string_view answer);

/// The source that runs: the program and, where a tail completes it (MultiPL-E), the tail.
[[nodiscard]] std::string with_tail(const Program& program, std::string_view tail);

/// `text` up to the first of the stop tokens.
[[nodiscard]] std::string_view cut_at_stop(std::string_view text, const std::vector<std::string>& stop_tokens);

/// What stands in the first fence of a chat answer; the whole text where there is none. An unclosed fence ends with the text.
[[nodiscard]] std::string_view first_fence(std::string_view text);

/// A C++, Java or Rust source without its main function.
[[nodiscard]] std::string without_main(std::string_view source, std::string_view language);

}  // namespace fixpoint::evals
