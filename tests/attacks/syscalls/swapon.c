// @attack adds swap
// @expect denied swapon
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_swapon, "/tmp/x", 0));
}
