// @attack tampers with the reboot key
// @expect denied reboot
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_reboot, 0xfee1dead, 672274793, 0x89abcdef, 0));
}
