#include "sandbox/detail/waiting_program.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace fixpoint::sandbox::detail {

namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);

// Not private futexes: the kernel's own wake-up, when a process leaves its memory, is not one.
void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  while (word.load() == value) ::syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}

void tell(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  word.store(value);
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace

int WaitingProgram::entry(void* self) {
  static_cast<WaitingProgram*>(self)->run();
  return 127;
}

/// In the new process. It must neither allocate nor touch anything of its parent's but this object.
void WaitingProgram::run() {
  make_room_for_limits();
  confine(*plan_, result_);
  if (result_.failure) return;
  tell(state_, stands);
  wait_while(told_, 0);
  if ((result_.failure = set_resource_limits(command_.limits))) return;
  if (!fault_at(Step::execute)) {
    if (command_.executable >= 0) {
      ::syscall(SYS_execveat, command_.executable, "", command_.arguments, command_.environment, AT_EMPTY_PATH);
    } else {
      ::execve(command_.arguments[0], command_.arguments, command_.environment);
    }
  }
  result_.failure = {Step::execute, errno};
}

Failure WaitingProgram::start(const TargetPlan& plan, bool nested_user_namespace) {
  alignas(16) static char stack[64 * 1024];
  plan_ = &plan;
  result_ = {};
  told_ = 0;
  state_ = prepares;
  const int flags = CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID | SIGCHLD | (nested_user_namespace ? CLONE_NEWUSER : 0);
  pid_ = fault_at(Step::clone_target) ? -1 : ::clone(entry, stack + sizeof stack, flags, this, nullptr, nullptr, &state_);
  if (pid_ < 0) return {Step::clone_target, errno};
  wait_while(state_, prepares);
  if (left() && !result_.failure) return {Step::clone_target, ECHILD};  // it was killed
  return result_.failure;
}

void WaitingProgram::execute(const Command& command) {
  command_ = command;
  tell(told_, 1);
}

void WaitingProgram::end() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  (void)take_listener();
}

}  // namespace fixpoint::sandbox::detail
