// @attack bends the clock of the machine
// @expect denied adjtimex
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_adjtimex, calloc(1, 256)));
}
