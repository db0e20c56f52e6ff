// @attack turns accounting off
// @expect denied acct
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_acct, 0));
}
