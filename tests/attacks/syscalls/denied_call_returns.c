// @attack goes on after a call that is denied
// @expect denied ptrace | signal
// @repeat 20
#include "attack.h"

int main(void) {
  syscall(SYS_ptrace, 0, 0, 0, 0);
  return escaped("the denied call returned");
}
