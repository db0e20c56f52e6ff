// @attack asks for one port
// @expect denied ioperm
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_ioperm, 0, 1, 1));
}
