// @attack asks to be traced by its parent
// @expect denied ptrace
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_ptrace, 0, 0, 0, 0));
}
