// @attack starts the classic way out of a chroot
// @expect denied chroot
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_chroot, "."));
}
