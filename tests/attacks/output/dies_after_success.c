// @attack prints success and dies
// @expect signal
#include "attack.h"
#include <signal.h>

int main(void) {
  held();
  fflush(stdout);
  raise(SIGKILL);
}
