// @attack renames the machine
// @expect denied sethostname
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_sethostname, "owned", 5));
}
