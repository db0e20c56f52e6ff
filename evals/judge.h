#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "evals/assemble.h"
#include "evals/benchmark.h"

namespace fixpoint::sandbox {
class Sandbox;
}

namespace fixpoint::evals {

/// What a program came to. Everything but `passed` is a failure; `not_judged` says nothing about the program.
enum class Outcome : std::uint8_t {
  passed,
  wrong_answer,
  exception,
  crashed,        // ended, died or left the protocol before it answered
  time_limit,
  memory_limit,
  other_limit,    // output, processes, files
  forbidden,      // it tried what the sandbox does not allow
  compile_error,
  not_judged,     // the sandbox or the tests failed; the message says how
};
[[nodiscard]] std::string_view to_string(Outcome outcome);
[[nodiscard]] std::optional<Outcome> parse_outcome(std::string_view text);

struct Judgement {
  Outcome outcome = Outcome::not_judged;
  std::optional<bool> base_passed;  // benchmarks with base and plus tests: the base tests alone
  int tests = 0;                    // known tests; the benchmark's own grouping
  int tests_passed = 0;             // before the run ended: most benchmarks stop at the first failure
  std::string level;                // who decided (sandbox/check.h): returned_values, separate_tests…
  std::string failed_test;          // bounded texts of the first failure
  std::string expected;
  std::string got;
  std::string message;
  std::chrono::microseconds cpu{0};  // of the program's jails
  std::chrono::microseconds wall{0};

  [[nodiscard]] bool passed() const { return outcome == Outcome::passed; }
};

struct JudgeOptions {
  std::filesystem::path outputs;  // a folder in which canonical solutions' outputs are kept between runs; none: they run each time
  std::optional<double> cpu_seconds;  // instead of each task's own limit
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;
};

/// Judges programs against a benchmark's tests, by the benchmark's own rules, in the sandbox. Where outputs are compared
/// with the canonical solution's, that one runs once a task, before the first program. Thread-safe. Borrows both.
class Judge {
 public:
  Judge(sandbox::Sandbox& sandbox, const Benchmark& benchmark, JudgeOptions options = {});
  ~Judge();
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  /// The hidden tests. `task` indexes Benchmark::tasks. A stop request gives `not_judged`.
  [[nodiscard]] Judgement judge(std::size_t task, const Program& program, std::stop_token stop = {});

  /// The visible assertions, stdin tests or calls; nothing where the task has none.
  [[nodiscard]] std::optional<Judgement> judge_visible(std::size_t task, const Program& program, std::stop_token stop = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::evals
