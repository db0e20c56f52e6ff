// @attack compares kernel pointers
// @expect denied kcmp
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_kcmp, getpid(), 1, 0, 0, 0));
}
