#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "agent/task.h"

namespace fixpoint::agent {

/// How a program did. `passed` means all of `total` tests, or, with no tests, that it loads without an error.
enum class CheckStatus : std::uint8_t {
  passed,
  wrong_answer,   ///< a test gave another value
  runtime_error,  ///< the program or a test raised or crashed
  compile_error,  ///< it does not compile, or has a syntax error
  time_limit,
  memory_limit,
  output_limit,
  forbidden,  ///< it tried what the sandbox does not allow
};
[[nodiscard]] std::string_view to_string(CheckStatus status);

/// A test that failed, in words for people and models. All texts are valid UTF-8 and bounded by the checker.
struct FailedTest {
  int index = 0;         ///< in the order of the request's tests
  std::string test;      ///< the assertion, or a name
  std::string input;     ///< stdin tests
  std::string expected;  ///< empty where unknown
  std::string actual;    ///< the value or output; empty where it raised
  std::string difference;  ///< how `actual` differs, in words (agent/difference.h); empty where they say nothing more
  std::string error;     ///< "ZeroDivisionError: division by zero (line 3)"; empty where it gave a value
  bool operator==(const FailedTest&) const = default;
};

/// One executed line of the program and what it changed.
struct TraceLine {
  int line = 0;         ///< 1-based
  std::string source;   ///< without indentation
  std::string effect;   ///< "ys = [1, 5]", "returns 3", "raises KeyError: 'a'"; empty where nothing changed
  bool operator==(const TraceLine&) const = default;
};

/// What the checker found. What a program does is never an error of the checker.
struct Judgement {
  CheckStatus status = CheckStatus::passed;
  int passed = 0;
  int total = 0;
  std::vector<FailedTest> failures;  ///< the first few, in order
  std::string message;               ///< compiler output or the uncaught error
  std::string output;                ///< what the program printed (head and tail)
  std::vector<TraceLine> trace;      ///< of the first failing test; head and tail
  std::int64_t trace_left_out = 0;   ///< lines left out between `trace`'s first half and its second
  int trace_head = 0;                ///< how many of `trace` come before the gap
  std::chrono::milliseconds sandbox{0};  ///< time spent running it
  std::chrono::milliseconds elapsed{0};  ///< with waiting for a place; 0: the caller's own measure counts
  bool operator==(const Judgement&) const = default;
};

struct CheckRequest {
  const Task* task = nullptr;  ///< language, entry point, setup, context
  std::string program;
  std::span<const Test> tests;  ///< may be empty: the program is only loaded
  bool want_trace = false;
  std::chrono::milliseconds time_limit{10'000};  ///< for everything together
};

/// The checker itself failed (no sandbox, no toolchain); nothing is known of the program.
struct CheckError {
  enum class Kind : std::uint8_t { cancelled, unsupported, infrastructure };
  Kind kind = Kind::infrastructure;
  std::string detail;
};

/// Who judges a program. check() blocks its thread, obeys the stop token promptly, and may be called from many threads.
class Checker {
 public:
  virtual ~Checker() = default;
  [[nodiscard]] virtual tl::expected<Judgement, CheckError> check(const CheckRequest& request, std::stop_token stop) = 0;
  /// Why no program in this language could ever be judged; asked before anything is spent.
  [[nodiscard]] virtual std::optional<std::string> refusal([[maybe_unused]] const std::string& language) const { return std::nullopt; }
};

/// Answers from a list, in order; then repeats the last one. For tests and demonstrations.
[[nodiscard]] std::unique_ptr<Checker> make_scripted_checker(std::vector<tl::expected<Judgement, CheckError>> answers);

}  // namespace fixpoint::agent
