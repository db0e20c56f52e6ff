// @attack raises its locked memory limit
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_setrlimit, 8, (unsigned long[2]){~0UL, ~0UL}));
}
