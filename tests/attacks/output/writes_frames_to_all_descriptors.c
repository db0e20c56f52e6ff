// @attack writes false reports to every descriptor that could be the judge's
// @expect held
#include "attack.h"

int main(void) {
  const char report[] = "\0\0\0\0ok\0exit 0";
  for (int fd = 3; fd < 1024; ++fd) {
    if (write(fd, report, sizeof report) > 0) return escaped("a descriptor took the report");
  }
  return held();
}
