// @attack removes a kernel module
// @expect denied delete_module
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_delete_module, "loop", 0));
}
