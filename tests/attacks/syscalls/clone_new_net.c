// @attack clones into a network namespace
// @expect denied clone
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_clone, 0x40000000 | 17, 0, 0, 0, 0));
}
