// @attack forks without end
// @expect process_limit | cpu_limit
// @expect(user) process_limit | cpu_limit | wall_limit
// @expect(no_cgroups) process_limit | cpu_limit | wall_limit
// @limits processes=32 cpu=2000 wall=20000
#include "attack.h"

int main(void) {
  while (1) fork();
}
