// @attack keeps its parent in vfork
// @expect cpu_limit
// @limits cpu=300 wall=6000
#include "attack.h"

int main(void) {
  if (vfork() == 0) {
    for (volatile long i = 0;; ++i) {
    }
  }
  return 0;
}
