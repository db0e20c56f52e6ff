// @attack looks for the terminal of the operator
// @expect held
#include "attack.h"

int main(void) {
  for (int fd = 0; fd < 3; ++fd) {
    if (isatty(fd)) return escaped("a stream is a terminal");
  }
  if (open("/dev/tty", O_RDWR) >= 0 || open("/dev/console", O_RDWR) >= 0 || open("/dev/ptmx", O_RDWR) >= 0) return escaped("a terminal opened");
  return held();
}
