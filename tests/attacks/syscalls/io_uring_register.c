// @attack registers with a ring
// @expect denied io_uring_register
#include "attack.h"

int main(void) {
  return tried(syscall(427, 3, 0, 0, 0));
}
