// @attack adds a filter whose questions it answers itself
// @expect denied seccomp
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_seccomp, 1, 8, (long[2]){0, 0}));
}
