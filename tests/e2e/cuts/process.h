#pragma once

#include <chrono>
#include <csignal>
#include <string>
#include <sys/types.h>
#include <vector>

namespace fixpoint::cuts {

/// A child process; killed (-9) and waited for when this goes.
class Process {
 public:
  Process() = default;
  /// Throws std::runtime_error. Its stderr is ours, or a pipe that wait_for_line reads.
  Process(const std::vector<std::string>& command, bool read_stderr = false);
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  /// -9, and waits.
  void kill();
  /// Nothing: it still runs. The exit status, or 128 and the signal.
  [[nodiscard]] int exit_code(std::chrono::milliseconds limit);
  /// What follows `words` in a line of its stderr. Throws std::runtime_error when it ends before.
  [[nodiscard]] std::string wait_for(const std::string& words);
  [[nodiscard]] pid_t id() const { return pid_; }

  static constexpr int kRunning = -1;

 private:
  pid_t pid_ = -1;
  int errors_ = -1;
};

}  // namespace fixpoint::cuts
