// @attack calls a denied call by its x32 number
// @expect denied x32:521
#include "attack.h"

int main(void) {
  return tried(syscall(0x40000000 | 521, 0, 0, 0, 0));
}
