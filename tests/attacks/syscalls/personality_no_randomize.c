// @attack turns address randomisation off
// @expect denied personality
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_personality, 0x0040000));
}
