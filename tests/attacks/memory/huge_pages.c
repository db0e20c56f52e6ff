// @attack takes the machine's huge pages
// @expect held
// @limits memory=32M
#include "attack.h"
#include <sys/mman.h>

int main(void) {
  void* block = mmap(0, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  return block == MAP_FAILED ? held() : escaped("huge pages");
}
