// @attack takes the kernel's timers
// @expect held
#include "attack.h"
#include <signal.h>
#include <time.h>

int main(void) {
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  for (int i = 0; i < 1000000; ++i) {
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return held();
  }
  return escaped("a million timers");
}
