// @attack asks for the machine's ports
// @expect denied iopl
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_iopl, 3));
}
