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
/// and the descriptors of the caller until then, so that nothing is copied and its seccomp listener is the caller's. For one caller
/// without threads, and never moved: the process has its address.
class WaitingProgram {
 public:
  /// Returns when it waits for its command, or why it does not.
  [[nodiscard]] Failure start(const TargetPlan& plan, bool nested_user_namespace);
  /// False before it is started and once end() has been called.
  [[nodiscard]] bool started() const { return pid_ > 0; }
  /// Lets it go. Until it has left, the caller may look at its own memory and wait for descriptors, and must change neither; to stop and
  /// go on once more would cost more than all that is left to do.
  void execute(const Command& command);
  /// Whether it runs its own program, or has ended.
  [[nodiscard]] bool left() const { return state_.load() == gone; }
  /// Why it ended without a program; to be asked when it has ended.
  [[nodiscard]] Failure failure() const { return result_.failure; }
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
