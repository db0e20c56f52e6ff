// @attack recurses without end
// @expect signal
// @limits memory=256M
#include "attack.h"

static int deeper(int n) {
  volatile char frame[4096];
  frame[0] = (char)n;
  return deeper(n + 1) + frame[0];
}

int main(void) {
  return deeper(0);
}
