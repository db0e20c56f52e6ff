// @attack becomes root
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_setuid, 0) == 0 && geteuid() == 0 && syscall(SYS_setresuid, 1, 1, 1) == 0 ? 0 : -1);
}
