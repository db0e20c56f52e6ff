// @attack reads and changes limits of its parent
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_prlimit64, getppid(), 7, 0, calloc(1, 16)));
}
