// @attack takes a descriptor out of its parent
// @expect denied pidfd_getfd
#include "attack.h"

int main(void) {
  return tried(syscall(438, syscall(434, getppid(), 0), 0, 0));
}
