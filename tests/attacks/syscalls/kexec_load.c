// @attack replaces the kernel
// @expect denied kexec_load
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_kexec_load, 0, 0, 0, 0));
}
