// @attack changes the root
// @expect denied pivot_root
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_pivot_root, ".", "."));
}
