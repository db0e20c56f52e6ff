// @attack clones into an IPC namespace
// @expect denied clone
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_clone, 0x08000000 | 17, 0, 0, 0, 0));
}
