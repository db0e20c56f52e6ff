// @attack sets the clock of the machine
// @expect denied settimeofday
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_settimeofday, (long[]){1, 0}, 0));
}
