// @attack loads a kernel module from a file
// @expect denied finit_module
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_finit_module, 0, "", 0));
}
