#pragma once

namespace fixpoint::cli {

/// While it lives, SIGINT and SIGTERM set a flag instead of ending the process; a second one ends it.
class InterruptFlag {
 public:
  InterruptFlag();
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  [[nodiscard]] static bool raised();
};

}  // namespace fixpoint::cli
