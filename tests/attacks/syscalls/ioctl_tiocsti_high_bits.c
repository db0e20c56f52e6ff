// @attack the same with a high bit that 64-bit comparisons trip over
// @expect denied ioctl
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_ioctl, 0, 0x100005412UL, "x"));
}
