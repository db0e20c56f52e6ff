// @attack prints without end to standard error
// @expect output_limit
// @limits output=100K
#include "attack.h"

int main(void) {
  while (1) fputs("error error error error error error\n", stderr);
}
