// @attack survives no matter what it catches
// @expect memory_limit
// @expect(user) memory_limit | cpu_limit | signal
// @expect(no_cgroups) memory_limit | cpu_limit | signal
// @limits memory=64M
#include "attack.h"
#include <signal.h>
#include <sys/mman.h>

int main(void) {
  for (int s = 1; s < 65; ++s) signal(s, SIG_IGN);
  while (1) {
    char* block = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block != MAP_FAILED) memset(block, 1, 1 << 20);
  }
}
