// @attack makes a mount writable
// @expect denied mount_setattr
#include "attack.h"

int main(void) {
  return tried(syscall(442, -100, "/", 0, calloc(1, 32), 32));
}
