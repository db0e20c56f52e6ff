// @attack leaves a process in a session of its own that ignores signals
// @expect held
#include "attack.h"
#include <signal.h>
#include <sys/prctl.h>

int main(void) {
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    for (int s = 1; s < 32; ++s) signal(s, SIG_IGN);
    prctl(PR_SET_NAME, "fp-left-behind");
    prctl(PR_SET_PDEATHSIG, 0);
    for (int fd = 0; fd < 64; ++fd) close(fd);
    while (1) pause();
  }
  return held();
}
