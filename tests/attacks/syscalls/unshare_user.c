// @attack unshares its user namespace
// @expect denied unshare
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_unshare, 0x10000000));
}
