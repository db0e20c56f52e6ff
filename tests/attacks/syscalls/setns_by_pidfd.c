// @attack enters the namespaces of process 1
// @expect denied setns
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_setns, syscall(434, 1, 0), 0x20000000));
}
