#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "evals/benchmark.h"
#include "evals/detail/canonical_outputs.h"
#include "sandbox/check.h"

/// From a benchmark's tests to the sandbox's checks.
namespace fixpoint::evals::detail {

/// The text of a task's assertions, with their set-up.
[[nodiscard]] sandbox::TextCheck text_check(const Task& task, const CheckFunction& tests);
[[nodiscard]] sandbox::TextCheck text_check(const Task& task, const Asserts& tests);

/// Where every test only asks whether the result is true (`assert f(…)`, `assert not f(…)`): what the program needs so that
/// the result crosses to the tests as a boolean, whatever object it is (a match object). Else nothing.
[[nodiscard]] std::string truth_wrapper(const Task& task, const Asserts& tests);

/// What runs before a program of LiveCodeBench or APPS: the imports that the reference checker gives it, without a name that
/// is the program's own to define. `entry_point` is empty where the program is run as a whole. Whole lines.
[[nodiscard]] std::string contest_preamble(std::string_view entry_point);

/// The name by which contest_source()'s function, or the method of its class Solution, is called: one object for all calls, and
/// a tuple counts as a list, as in the reference checker.
inline constexpr std::string_view kContestCall = "fixpoint_call";

/// The program after its preamble and, where there is an entry point, with kContestCall.
[[nodiscard]] std::string contest_source(std::string_view program, std::string_view entry_point);

/// A check of the calls of LiveCodeBench's functional tests; `source` becomes its contest_source().
[[nodiscard]] sandbox::CallCheck json_call_check(const Task& task, const JsonCalls& tests, std::string& source);

/// What EvalPlus asks of a program: outputs like the canonical solution's.
struct DifferentialChecks {
  sandbox::CallCheck base = {};
  sandbox::CallCheck plus = {};
  std::chrono::milliseconds wall{0};  // the canonical solution's
  Digests digests = Digests::none;
};
[[nodiscard]] DifferentialChecks differential_checks(const Task& task, const Differential& tests, CanonicalOutputs outputs);

}  // namespace fixpoint::evals::detail
