// @attack clones into a cgroup namespace
// @expect denied clone
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_clone, 0x02000000 | 17, 0, 0, 0, 0));
}
