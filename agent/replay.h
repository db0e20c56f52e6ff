#pragma once

#include <span>
#include <string>

#include "agent/event.h"

namespace fixpoint::agent {

struct ReplayReport {
  int events = 0;
  int prompts = 0;   ///< rebuilt and compared, byte for byte
  int decisions = 0; ///< steps, programs and explanations derived again
  std::string difference;  ///< the first one, in words; empty: all the same
  [[nodiscard]] bool identical() const { return difference.empty(); }
};

/// Runs a recorded session again without a model and without a sandbox: what they said is taken from the record, and
/// everything that follows from it (each step, prompt, seed, program, explanation, the end) is worked out anew and
/// compared with what was recorded. `events` begins with the session's first.
[[nodiscard]] ReplayReport replay(std::span<const Stamped> events);

}  // namespace fixpoint::agent
