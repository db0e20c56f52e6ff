// @attack pastes into a console
// @expect denied ioctl
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_ioctl, 1, 0x541c, "\x02"));
}
