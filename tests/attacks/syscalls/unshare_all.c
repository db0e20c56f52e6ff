// @attack unshares everything
// @expect denied unshare
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_unshare, 0x7e020000));
}
