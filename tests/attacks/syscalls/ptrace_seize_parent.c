// @attack seizes its parent
// @expect denied ptrace
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_ptrace, 0x4206, getppid(), 0, 0));
}
