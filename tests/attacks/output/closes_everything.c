// @attack closes its output and ends well
// @expect ok
#include "attack.h"

int main(void) {
  for (int fd = 0; fd < 1024; ++fd) close(fd);
  return 0;
}
