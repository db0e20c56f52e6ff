// @attack clones into a process namespace
// @expect denied clone
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_clone, 0x20000000 | 17, 0, 0, 0, 0));
}
