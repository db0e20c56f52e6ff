// @attack prints gigabytes in large pieces
// @expect output_limit
// @limits output=100K
#include "attack.h"

int main(void) {
  static char block[1 << 22];
  while (1) {
    if (write(1, block, sizeof block) < 0) return 1;
  }
}
