#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "evals/benchmark.h"
#include "sandbox/check.h"

/// From a benchmark's tests to the sandbox's checks.
namespace fixpoint::evals::detail {

/// The text of a task's assertions, with their set-up.
[[nodiscard]] sandbox::TextCheck text_check(const Task& task, const CheckFunction& tests);
[[nodiscard]] sandbox::TextCheck text_check(const Task& task, const Asserts& tests);

/// Where every test only asks whether the result is true (`assert f(…)`, `assert not f(…)`): what the program needs so that
/// the result crosses to the tests as a boolean, whatever object it is (a match object). Else nothing.
[[nodiscard]] std::string truth_wrapper(const Task& task, const Asserts& tests);

/// A check of the calls of LiveCodeBench's functional tests; `source` gains what lets them be called.
[[nodiscard]] sandbox::CallCheck json_call_check(const Task& task, const JsonCalls& tests, std::string& source);

/// What EvalPlus asks of a program, with the answers of the canonical solution.
struct DifferentialChecks {
  sandbox::CallCheck base;
  sandbox::CallCheck plus;
  std::chrono::milliseconds reference_wall{0};  // the canonical solution's, for both
  bool digests = false;  // its outputs are too large to travel: large ones are compared by the hash of their text
};

/// Runs the canonical solution on all inputs. An error where it does not answer all of them.
[[nodiscard]] tl::expected<DifferentialChecks, std::string> differential_checks(sandbox::Sandbox& sandbox, const Task& task, const Differential& tests,
                                                                                const sandbox::Limits& limits, std::stop_token stop);

/// Who runs, and how its outputs are reduced.
struct DifferentialCall {
  Oracle oracle = Oracle::equal;
  bool reference = false;
  bool digests = false;
};

/// The name that a differential check calls; adds to `source` what that needs.
[[nodiscard]] std::string differential_entry_point(const Task& task, const DifferentialCall& call, std::string& source);

}  // namespace fixpoint::evals::detail
