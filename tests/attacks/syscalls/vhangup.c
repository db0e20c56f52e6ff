// @attack hangs up the terminal
// @expect denied vhangup
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_vhangup));
}
