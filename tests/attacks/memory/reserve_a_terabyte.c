// @attack reserves more address space than there is memory
// @expect held
// @limits memory=64M
#include "attack.h"
#include <sys/mman.h>

int main(void) {
  void* block = mmap(0, 1UL << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block != MAP_FAILED) *(volatile char*)block = 1;
  return held();
}
