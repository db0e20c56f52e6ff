// @attack leases a file
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_fcntl, open_any(), 1024, 1));
}
