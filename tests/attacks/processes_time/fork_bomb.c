// @attack forks without end
// @expect process_limit | cpu_limit
// @limits processes=32 cpu=2000 wall=90000
#include "attack.h"

int main(void) {
  while (1) fork();
}
