// @attack changes its own filter
// @expect denied prctl
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_prctl, 22, 2, (long[2]){0, 0}, 0, 0));
}
