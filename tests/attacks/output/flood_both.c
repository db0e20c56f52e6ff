// @attack prints without end to both streams
// @expect output_limit
// @limits output=100K
#include "attack.h"

int main(void) {
  while (1) {
    puts("out out out out out out out out");
    fputs("error error error error\n", stderr);
  }
}
