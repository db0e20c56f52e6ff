// @attack lets anybody trace it
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_prctl, 0x59616d61, -1, 0, 0, 0));
}
