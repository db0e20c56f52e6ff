// @attack leaves children that nobody waits for
// @expect held | process_limit
// @limits processes=32 cpu=3000
#include "attack.h"

int main(void) {
  for (int i = 0; i < 1000; ++i) {
    const int child = fork();
    if (child < 0) return held();
    if (child == 0) _exit(0);
  }
  return escaped("a thousand zombies under a limit of 32 processes");
}
