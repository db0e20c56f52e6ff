// @attack types into the terminal of the operator
// @expect denied ioctl
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_ioctl, 0, 0x5412, "x"));
}
