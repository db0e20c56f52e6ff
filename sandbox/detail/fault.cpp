#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "sandbox/detail/step.h"

namespace fixpoint::sandbox::detail {

namespace {

void wait_for_word() {
  constexpr timespec kLongest{60, 0};
  sigset_t word;
  sigemptyset(&word);
  sigaddset(&word, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &word, nullptr);
  ::prctl(PR_SET_NAME, "fixpoint-fault");
  ::sigtimedwait(&word, nullptr, &kLongest);
  ::prctl(PR_SET_NAME, "fixpoint-going");
}

}  // namespace

bool fault_at(Step step) {
  if (injected_fault.step != step || step == Step::none) return false;
  if (injected_fault.fault == Fault::waits) {
    wait_for_word();
    return false;
  }
  if (injected_fault.fault == Fault::kills) {
    // Pid 1 of a namespace cannot kill itself by a signal; leaving at once without a word is the same to everybody else.
    ::kill(::getpid(), SIGKILL);
    ::_exit(137);
  }
  errno = EIO;
  return true;
}

}  // namespace fixpoint::sandbox::detail
