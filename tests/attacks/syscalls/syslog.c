// @attack reads the kernel log
// @expect denied syslog
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_syslog, 3, calloc(1, 4096), 4096));
}
