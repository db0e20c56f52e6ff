#pragma once

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "evals/benchmark.h"
#include "sandbox/check.h"

/// What EvalPlus compares a program's outputs with.
namespace fixpoint::evals::detail {

/// Which outputs travel as a hash instead of as themselves.
enum class Digests : std::uint8_t {
  none,
  texts,  // long texts, which nobody compares with a tolerance
  all,    // whatever is large: all together would be too much to keep
};

/// The canonical solution's outputs, in the order of the inputs.
struct CanonicalOutputs {
  std::vector<sandbox::Value> base;
  std::vector<sandbox::Value> plus;
  std::chrono::milliseconds wall{0};  // what it took, for both
  Digests digests = Digests::none;    // what its outputs need, and so the program's
};

/// Runs the canonical solution on all inputs. An error where it does not answer all of them.
[[nodiscard]] tl::expected<CanonicalOutputs, std::string> canonical_outputs(sandbox::Sandbox& sandbox, const Task& task, const Differential& tests,
                                                                            const sandbox::Limits& limits, std::stop_token stop);

/// Whose outputs, and how they are reduced.
struct OutputsOf {
  Oracle oracle = Oracle::equal;
  bool reference = false;
  Digests digests = Digests::none;
};

/// The name to call for a program's outputs; adds to `source` what that needs.
[[nodiscard]] std::string called_name(const Task& task, const OutputsOf& whose, std::string& source);

/// A call for each input (the list or tuple of its arguments), without what is expected.
[[nodiscard]] sandbox::CallCheck call_check(const std::string& entry_point, const std::vector<sandbox::Value>& inputs);

}  // namespace fixpoint::evals::detail
