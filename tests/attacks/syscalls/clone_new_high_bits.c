// @attack hides a namespace flag among high bits that the kernel ignores
// @expect denied clone
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_clone, 0xffffffff10000011UL, 0, 0, 0, 0));
}
