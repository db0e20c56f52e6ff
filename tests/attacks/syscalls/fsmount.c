// @attack makes a mount of a file system
// @expect denied fsmount
#include "attack.h"

int main(void) {
  return tried(syscall(432, 3, 0, 0));
}
