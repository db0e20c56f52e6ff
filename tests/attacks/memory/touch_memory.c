// @attack takes memory until none is left
// @expect memory_limit
// @limits memory=64M
#include "attack.h"

int main(void) {
  while (1) {
    char* block = malloc(1 << 20);
    if (block) memset(block, 1, 1 << 20);
  }
}
