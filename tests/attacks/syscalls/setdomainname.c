// @attack renames its domain
// @expect denied setdomainname
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_setdomainname, "owned", 5));
}
