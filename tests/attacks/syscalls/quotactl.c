// @attack changes quotas
// @expect denied quotactl
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_quotactl, 0x800001 << 8, 0, 0, 0));
}
