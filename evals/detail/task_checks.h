#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

/// Which outputs travel as a hash instead of as themselves.
enum class Digests : std::uint8_t {
  none,
  texts,  // long texts, which nobody compares with a tolerance
  all,    // whatever is large, by the hash of its text: all together would be too much to keep
};

/// What EvalPlus asks of a program, with the answers of the canonical solution.
struct DifferentialChecks {
  sandbox::CallCheck base;
  sandbox::CallCheck plus;
  std::chrono::milliseconds reference_wall{0};  // the canonical solution's, for both
  Digests digests = Digests::none;  // what its outputs need, and so the program's
};

/// Runs the canonical solution on all inputs. An error where it does not answer all of them.
[[nodiscard]] tl::expected<DifferentialChecks, std::string> differential_checks(sandbox::Sandbox& sandbox, const Task& task, const Differential& tests,
                                                                                const sandbox::Limits& limits, std::stop_token stop);

/// Who runs, and how its outputs are reduced.
struct DifferentialCall {
  Oracle oracle = Oracle::equal;
  bool reference = false;
  Digests digests = Digests::none;
};

/// The name that a differential check calls; adds to `source` what that needs.
[[nodiscard]] std::string differential_entry_point(const Task& task, const DifferentialCall& call, std::string& source);

}  // namespace fixpoint::evals::detail
