// @attack locks memory so that it cannot be taken away
// @expect held
#include "attack.h"
#include <sys/mman.h>

int main(void) {
  return mlockall(MCL_CURRENT | MCL_FUTURE) == 0 ? escaped("locked") : held();
}
