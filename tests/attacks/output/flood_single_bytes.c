// @attack prints without end, a byte at a time
// @expect output_limit
// @limits output=20K
#include "attack.h"

int main(void) {
  while (write(1, "x", 1) == 1) {
  }
  return 0;
}
