// @attack raises its own core limit
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_setrlimit, 4, (unsigned long[2]){~0UL, ~0UL}));
}
