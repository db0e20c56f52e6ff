// @attack spins in children that are each young
// @expect cpu_limit
// @expect(user) cpu_limit | wall_limit
// @expect(no_cgroups) cpu_limit | wall_limit
// @limits cpu=600 wall=20000
#include "attack.h"
#include <sys/wait.h>
#include <time.h>

int main(void) {
  while (1) {
    if (fork() == 0) {
      while (clock() < CLOCKS_PER_SEC / 20) {
      }
      _exit(0);
    }
    wait(0);
  }
}
