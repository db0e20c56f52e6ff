// @attack spins in orphans while it sleeps
// @expect cpu_limit
// @expect(user) cpu_limit | wall_limit
// @expect(no_cgroups) cpu_limit | wall_limit
// @limits cpu=500 wall=20000
#include "attack.h"

int main(void) {
  if (fork() == 0) {
    if (fork() != 0) _exit(0);
    setsid();
    for (volatile long i = 0;; ++i) {
    }
  }
  while (1) pause();
}
