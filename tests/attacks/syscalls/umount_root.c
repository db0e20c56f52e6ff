// @attack takes the root away
// @expect denied umount2
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_umount2, "/", 2));
}
