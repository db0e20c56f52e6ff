#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "evals/benchmark.h"
#include "sandbox/value.h"

/// How EvalPlus compares an output with the canonical solution's.
namespace fixpoint::evals::detail {

/// What one output is compared with.
struct Expectation {
  sandbox::Value arguments;  // needed by some oracles
  sandbox::Value value;
  double tolerance = 0;
};

/// Tolerances are sticky: 0 becomes 1e-6 at the first expected output that is a float or holds only floats, and stays.
[[nodiscard]] std::vector<double> effective_tolerances(double tolerance, std::span<const sandbox::Value> expected);

[[nodiscard]] bool accepts(Oracle oracle, const sandbox::Value& got, const Expectation& expectation);

/// An expectation as one value, as it travels through sandbox::CallTest, and back; there the canonical solution's output is the
/// item kPackedValue.
[[nodiscard]] sandbox::Value pack(Expectation expectation);
inline constexpr std::size_t kPackedValue = 1;
[[nodiscard]] bool accepts_packed(Oracle oracle, const sandbox::Value& got, const sandbox::Value& packed);

}  // namespace fixpoint::evals::detail
