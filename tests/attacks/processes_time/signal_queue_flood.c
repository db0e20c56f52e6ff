// @attack queues signals without end
// @expect held
#include "attack.h"
#include <signal.h>

int main(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, 0);
  for (int i = 0; i < 1000000; ++i) {
    if (sigqueue(getpid(), SIGRTMIN, (union sigval){0}) != 0) return held();
  }
  return escaped("a million signals");
}
