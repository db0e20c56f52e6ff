// @attack opens host files relative to any descriptor
// @expect held
#include "attack.h"

int main(void) {
  for (int fd = 0; fd < 1024; ++fd) {
    if (openat(fd, "etc/shadow", O_RDONLY) >= 0 || openat(fd, "../../../../etc/shadow", O_RDONLY) >= 0) return escaped("openat");
  }
  return held();
}
