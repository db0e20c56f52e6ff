// @attack grows the pipe to the judge
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_fcntl, 1, 1031, 1 << 20));
}
