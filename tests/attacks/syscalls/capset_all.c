// @attack gives itself every capability
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_capset, (unsigned[2]){0x20080522, 0}, (unsigned[6]){-1u, -1u, -1u, -1u, -1u, -1u}));
}
