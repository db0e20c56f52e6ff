// @attack stops its parent so that nobody watches
// @expect held
#include "attack.h"
#include <signal.h>

int main(void) {
  kill(getppid(), SIGSTOP);
  return held();
}
