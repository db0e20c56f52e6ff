// @attack reads what it wrote, or writes to its input
// @expect held
#include "attack.h"

int main(void) {
  char c;
  fcntl(1, F_SETFL, O_NONBLOCK);
  if (read(1, &c, 1) >= 0 || write(0, "x", 1) >= 0) return escaped("a pipe works in both directions");
  fcntl(1, F_SETFL, 0);
  return held();
}
