// @attack keeps capabilities over a change of user
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_prctl, 8, 1, 0, 0, 0));
}
