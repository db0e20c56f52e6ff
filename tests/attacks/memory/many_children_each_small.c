// @attack takes memory in many children, each below the limit
// @expect memory_limit | held
// @limits memory=64M processes=32 wall=8000
#include "attack.h"
#include <sys/wait.h>

int main(void) {
  for (int i = 0; i < 16; ++i) {
    if (fork() == 0) {
      char* block = malloc(16 << 20);
      memset(block, 1, 16 << 20);
      sleep(5);
      _exit(0);
    }
  }
  while (wait(0) > 0) {
  }
  return held();
}
