// @attack takes the processor for itself
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_sched_setscheduler, 0, 1, (int[1]){1}));
}
