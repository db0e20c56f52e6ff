// @attack makes itself open to tracers
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_prctl, 4, 1, 0, 0, 0));
}
