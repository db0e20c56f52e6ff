// @attack watches a directory
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_fcntl, open_any(), 1026, 0x80000002UL));
}
