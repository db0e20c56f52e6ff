// @attack joins the root group
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_setgroups, 1, (int[1]){0}));
}
