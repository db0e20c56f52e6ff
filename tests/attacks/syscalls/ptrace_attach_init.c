// @attack attaches to process 1 of its world
// @expect denied ptrace
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_ptrace, 16, 1, 0, 0));
}
