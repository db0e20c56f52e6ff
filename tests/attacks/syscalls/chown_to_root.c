// @attack gives a file to root
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_chown, ".", 0, 0));
}
