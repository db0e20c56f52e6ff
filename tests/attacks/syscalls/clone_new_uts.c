// @attack clones into a host name of its own
// @expect denied clone
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_clone, 0x04000000 | 17, 0, 0, 0, 0));
}
