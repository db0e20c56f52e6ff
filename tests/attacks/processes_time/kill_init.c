// @attack kills the first process of its world
// @expect held
#include "attack.h"
#include <signal.h>

int main(void) {
  kill(1, SIGKILL);
  kill(1, SIGSTOP);
  kill(1, SIGTERM);
  for (int s = 1; s < 65; ++s) kill(1, s);
  return held();
}
