// @attack keeps its parent in vfork
// @expect cpu_limit
// @expect(user) cpu_limit | ok
// @expect(no_cgroups) cpu_limit | ok
// @limits cpu=300 wall=90000
#include "attack.h"

int main(void) {
  if (vfork() == 0) {
    for (volatile long i = 0;; ++i) {
    }
  }
  return 0;
}
