// @attack looks for descriptors that were left open
// @expect held
#include "attack.h"
#include <sys/stat.h>

int main(void) {
  struct stat seen;
  for (int fd = 3; fd < 4096; ++fd) {
    if (fstat(fd, &seen) == 0) return escaped("a descriptor is open");
  }
  return held();
}
