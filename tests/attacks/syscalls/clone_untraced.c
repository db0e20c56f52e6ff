// @attack clones a child that no tracer may follow
// @expect denied clone
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_clone, 0x00800000 | 17, 0, 0, 0, 0));
}
