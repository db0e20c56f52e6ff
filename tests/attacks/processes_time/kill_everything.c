// @attack kills every process that it can see
// @expect held | signal
#include "attack.h"
#include <signal.h>

int main(void) {
  held();
  fflush(stdout);
  kill(-1, SIGKILL);
  return 0;
}
