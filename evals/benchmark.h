#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "sandbox/value.h"

namespace fixpoint::evals {

/// What is wrong with a benchmark or sample file, and where.
struct DataError {
  std::string file;
  std::size_t line = 0;  // from 1; 0: the file as a whole
  std::string field;     // empty: the row as a whole
  std::string message;
  [[nodiscard]] std::string text() const;  // "FILE:LINE: field 'F': MESSAGE"
};

/// `source` defines check(candidate), which is called with the entry point (HumanEval).
struct CheckFunction {
  std::string source;
};

/// Statements that run after the program, in its namespace, in order; each one is a test (MBPP).
struct Asserts {
  std::string setup;
  std::vector<std::string> statements;
};

/// How an output is compared with the canonical solution's (EvalPlus). `equal` is Python's == with a float tolerance.
enum class Oracle { equal, polynomial_zero, any_value, zero_accepted, pyramid_surface, padded_digit_distance, same_set, not_none };

/// Calls whose outputs must equal the canonical solution's. An input is the list or tuple of the arguments.
struct Differential {
  std::vector<sandbox::Value> base;
  std::vector<sandbox::Value> plus;
  double tolerance = 0;  // absolute; 0 becomes 1e-6 from the first float output on
  Oracle oracle = Oracle::equal;
};

/// Source that completes the program; normal end with exit code 0 is a pass (MultiPL-E).
struct ProgramTail {
  std::string source;
};

struct StdioTest {
  std::string input;
  std::string output;
};
/// Whole programs from stdin to stdout, compared line by line, unequal lines as decimal numbers.
struct Stdio {
  std::vector<StdioTest> tests;
};

/// Calls with JSON arguments and a JSON result, exact; a tuple counts as a list (LiveCodeBench, LeetCode style).
struct JsonCalls {
  struct Call {
    sandbox::Value arguments;                     // a list
    sandbox::Value expected;
    std::optional<sandbox::Value> also_accepted;  // APPS wraps some results in a list
  };
  std::vector<Call> calls;
};

using Tests = std::variant<CheckFunction, Asserts, Differential, ProgramTail, Stdio, JsonCalls>;

/// How a model's or a sample's completion and the task become a program.
enum class Assembly {
  prompt_first,   // prompt + completion
  whole_program,  // the completion is the program
  cut_at_stop,    // prompt + completion up to the first stop token; a full program in a fence is cut open
};

struct Task {
  std::string id;
  std::string language;   // the sandbox's name: python, cpp, javascript, bash…
  std::string prompt;     // bytes that precede a completion; also the source given to a model
  std::string statement;  // words for a model; empty: the prompt says it all
  std::string entry_point;
  std::string reference;  // the data's own solution as a whole program; empty: the data has none
  std::vector<std::string> stop_tokens;
  Assembly assembly = Assembly::whole_program;
  std::vector<std::string> visible_asserts;
  std::vector<StdioTest> visible_stdio;
  std::vector<JsonCalls::Call> visible_calls;
  std::optional<int> shown_tests;             // how many of them a model's first prompt quotes; else as many as the loop quotes
  std::map<std::string, std::string> labels;  // groups that a report counts apart: steps, wording, difficulty
  Tests hidden;
  double cpu_seconds = 3;  // for one test run as the reference harness groups them
};

struct Benchmark {
  std::string name;       // humaneval, mbpp, mbpp-sanitized, humaneval+, mbpp+, multipl-e-cpp, livecodebench…
  std::string prompt_id;  // which prompt bytes a model sees; scores under two prompts are not comparable
  std::filesystem::path file;
  std::string sha256;     // of the file's bytes
  std::vector<Task> tasks;
};

/// Reads a benchmark file (JSON lines, one JSON array, either gzipped) and recognises its format by its fields. Every
/// row must be whole: the first one that is not is the error. Task ids are unique.
[[nodiscard]] tl::expected<Benchmark, DataError> load_benchmark(const std::filesystem::path& file);

/// The same from bytes that stand for `file`.
[[nodiscard]] tl::expected<Benchmark, DataError> parse_benchmark(std::string_view bytes, const std::filesystem::path& file);

/// SHA-256 (hex) of a file's bytes; empty where it can't be read.
[[nodiscard]] std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace fixpoint::evals
