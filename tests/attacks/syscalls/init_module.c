// @attack loads a kernel module
// @expect denied init_module
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_init_module, "", 0, ""));
}
