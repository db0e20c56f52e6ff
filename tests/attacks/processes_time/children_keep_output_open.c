// @attack leaves a child that keeps its output open
// @expect held
// @limits wall=20000
#include "attack.h"

int main(void) {
  held();
  fflush(stdout);
  if (fork() == 0) {
    sleep(1000);
    _exit(0);
  }
  _exit(0);
}
