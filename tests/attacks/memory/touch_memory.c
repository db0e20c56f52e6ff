// @attack takes memory until none is left
// @expect memory_limit
// @expect(user) memory_limit | cpu_limit | signal
// @expect(no_cgroups) memory_limit | cpu_limit | signal
// @limits memory=64M
#include "attack.h"

int main(void) {
  while (1) {
    char* block = malloc(1 << 20);
    if (block) memset(block, 1, 1 << 20);
  }
}
