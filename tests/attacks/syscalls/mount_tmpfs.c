// @attack mounts
// @expect denied mount
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_mount, "x", "/tmp", "tmpfs", 0, ""));
}
