// @attack clones a child whose parent is its own parent, outside of the run where the program comes from a prepared interpreter
// @expect denied clone
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_clone, 0x00008000 | 17, 0, 0, 0, 0));
}
