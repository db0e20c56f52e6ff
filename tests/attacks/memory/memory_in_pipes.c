// @attack takes kernel memory by full pipes
// @expect held | memory_limit
// @limits memory=64M
#include "attack.h"

int main(void) {
  static char block[1 << 16];
  for (int i = 0; i < 10000; ++i) {
    int ends[2];
    if (pipe(ends) != 0) return held();
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], block, sizeof block) > 0) {
    }
  }
  return escaped("ten thousand full pipes");
}
