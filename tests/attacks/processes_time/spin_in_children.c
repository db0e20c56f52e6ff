// @attack spins in children that are each young
// @expect cpu_limit
// @limits cpu=600 wall=90000
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
