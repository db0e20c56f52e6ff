// @attack enters a ring
// @expect denied io_uring_enter
#include "attack.h"

int main(void) {
  return tried(syscall(426, 3, 1, 0, 0, 0, 0));
}
