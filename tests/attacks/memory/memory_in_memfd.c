// @attack takes memory by files that have no name
// @expect memory_limit | file_limit | held
// @limits memory=64M
#include "attack.h"

int main(void) {
  static char block[1 << 20];
  const int fd = (int)syscall(SYS_memfd_create, "x", 0);
  memset(block, 1, sizeof block);
  for (int i = 0; i < 512; ++i) {
    if (write(fd, block, sizeof block) < 0) return held();
  }
  return escaped("512 MiB in a file without a name");
}
