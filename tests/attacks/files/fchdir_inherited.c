// @attack leaves its root by a directory that was left open
// @expect held
#include "attack.h"

int main(void) {
  for (int fd = 0; fd < 1024; ++fd) {
    if (fchdir(fd) == 0) return escaped("a directory is open");
  }
  return held();
}
