// @attack pushes memory of its parent out
// @expect denied process_madvise
#include "attack.h"

int main(void) {
  return tried(syscall(440, syscall(434, getppid(), 0), 0, 0, 20, 0));
}
