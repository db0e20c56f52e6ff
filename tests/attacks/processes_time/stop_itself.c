// @attack stops itself so that no CPU limit is reached
// @expect wall_limit
// @limits wall=500
#include "attack.h"
#include <signal.h>

int main(void) {
  raise(SIGSTOP);
  return 0;
}
