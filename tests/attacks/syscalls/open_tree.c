// @attack clones a mount tree
// @expect denied open_tree
#include "attack.h"

int main(void) {
  return tried(syscall(428, -100, "/", 1));
}
