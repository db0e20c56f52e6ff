// @attack clones into a mount namespace
// @expect denied clone
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_clone, 0x00020000 | 17, 0, 0, 0, 0));
}
