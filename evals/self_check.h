#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "evals/benchmark.h"

namespace fixpoint::sandbox {
class Sandbox;
}

namespace fixpoint::evals {

struct SelfCheck {
  int programs = 0;
  std::vector<std::string> failures;  // what was judged wrongly, one sentence each
  double seconds = 0;
  [[nodiscard]] bool passed() const { return programs > 0 && failures.empty(); }
};

/// Whether verdicts on this machine can be believed: by the same judge and the same kind of tests as `benchmark`, a program
/// that is known to be right must pass, and one that is wrong, one that is empty and several that cheat must not. Where the
/// data has solutions, the first one must pass, and must fail as an empty program.
[[nodiscard]] SelfCheck self_check(sandbox::Sandbox& sandbox, const Benchmark& benchmark, std::stop_token stop = {});

}  // namespace fixpoint::evals
