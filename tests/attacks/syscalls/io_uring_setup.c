// @attack does its system calls through a ring that no filter sees
// @expect denied io_uring_setup
#include "attack.h"

int main(void) {
  return tried(syscall(425, 8, calloc(1, 120)));
}
