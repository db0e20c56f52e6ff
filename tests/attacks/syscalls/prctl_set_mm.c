// @attack rewrites what the kernel knows of its memory
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_prctl, 35, 1, 0x400000, 0, 0));
}
