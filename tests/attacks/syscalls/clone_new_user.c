// @attack clones into a user namespace, where it would be root
// @expect denied clone
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_clone, 0x10000000 | 17, 0, 0, 0, 0));
}
