#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "evals/benchmark.h"

namespace fixpoint::evals {

/// One program for one task, as somebody's generator wrote it.
struct Sample {
  std::size_t task = 0;   // index into Benchmark::tasks
  int number = 0;         // among the task's samples, in file order
  std::string text;
  enum class Form { completion, solution, chat_answer } form = Form::completion;
};

/// Reads samples in the benchmarks' own formats, JSON lines or one array, either gzipped: `task_id` (or MultiPL-E's
/// `name`, LiveCodeBench's `question_id`) with `completion` (after the prompt), `solution` (a whole program), `completions` or
/// `code_list` (lists of them), or `gpt_solution` (a chat answer with a fence); or APPS's all_codes.json, one object with a whole
/// program, or a list of them, for each problem's number. Ids are matched without regard to case; a bare number matches too. Unknown tasks and
/// rows without a program are errors.
[[nodiscard]] tl::expected<std::vector<Sample>, DataError> load_samples(const std::filesystem::path& file, const Benchmark& benchmark);
[[nodiscard]] tl::expected<std::vector<Sample>, DataError> parse_samples(std::string_view bytes, const std::filesystem::path& file,
                                                                         const Benchmark& benchmark);

}  // namespace fixpoint::evals
