// @attack calls by the x32 numbers, which pass many deny lists
// @expect denied x32:getpid
#include "attack.h"

int main(void) {
  return tried(syscall(0x40000000 | 39));
}
