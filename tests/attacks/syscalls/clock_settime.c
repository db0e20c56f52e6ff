// @attack sets the clock of the machine
// @expect denied clock_settime
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_clock_settime, 0, (long[]){1, 0}));
}
