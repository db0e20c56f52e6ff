// @attack makes all its memory executable
// @expect denied personality
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_personality, 0x0400000));
}
