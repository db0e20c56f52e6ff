#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "sandbox/detail/limits.h"
#include "sandbox/detail/step.h"
#include "sandbox/detail/target.h"
#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

/// What a program's process executes, and within which limits.
struct Command {
  int executable = -1;  ///< run this file; otherwise arguments[0]
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  ResourceLimits limits;
};

/// The process of a program that is yet to come: confined already, all that it has left to do is to limit itself and execve. It shares the memory
/// and the descriptors of the caller until then, so that nothing is copied and its seccomp listener is the caller's; of the two only
/// one runs at a time. For one caller without threads, and never moved: the process has its address.
class WaitingProgram {
 public:
  /// Returns when it waits for its command, or why it does not.
  [[nodiscard]] Failure start(const TargetPlan& plan, bool nested_user_namespace);
  /// False before it is started and once it has been ended.
  [[nodiscard]] bool waits() const { return pid_ > 0; }
  /// Returns when the program's first instruction is next, or the command's failure.
  [[nodiscard]] Failure execute(const Command& command);
  /// It is not needed after all.
  void end();
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] UniqueFd take_listener() { return UniqueFd(std::exchange(result_.listener, -1)); }

 private:
  enum State : std::uint32_t { gone, prepares, stands };  // gone: the kernel's word that it has left our memory

  static int entry(void* self);
  void run();

  std::atomic<std::uint32_t> state_ = gone;
  std::atomic<std::uint32_t> told_ = 0;
  const TargetPlan* plan_ = nullptr;
  Command command_;
  TargetResult result_;
  pid_t pid_ = -1;
};

}  // namespace fixpoint::sandbox::detail
