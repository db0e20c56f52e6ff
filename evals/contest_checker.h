#pragma once

#include <memory>

#include "agent/checker.h"

namespace fixpoint::evals {

/// Judges a session's programs for tasks of LiveCodeBench and APPS as the hidden tests will: with the imports that the reference
/// checker gives them, and, where the task has an entry point, by calls of that function or of the method of class Solution.
/// Assertions may name either, "assert f(1) == 2" or "assert Solution().f(1) == 2". Lines are told as the program has them.
/// Borrows `checker`, and is as thread-safe.
[[nodiscard]] std::unique_ptr<agent::Checker> make_contest_checker(agent::Checker& checker);

}  // namespace fixpoint::evals
