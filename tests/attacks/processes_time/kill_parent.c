// @attack kills and stops its parent
// @expect held | signal
#include "attack.h"
#include <signal.h>

int main(void) {
  for (int s = 64; s > 0; --s) kill(getppid(), s);
  return held();
}
