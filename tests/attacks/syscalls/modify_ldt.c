// @attack edits its segment table
// @expect denied modify_ldt
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_modify_ldt, 0, calloc(1, 64), 64));
}
