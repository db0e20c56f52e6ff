// @attack sweeps the calls that programs do not need
// @expect held
#include "attack.h"

int main(void) {
  // uselib, ustat, sysfs, _sysctl, lookup_dcookie, remap_file_pages, set_mempolicy, mbind, migrate_pages, move_pages, vmsplice,
  // kexec's kin, memfd_secret, process groups of landlock, lsm_*, mseal, statmount, listmount.
  const long numbers[] = {134, 136, 139, 156, 212, 216, 238, 237, 256, 279, 278, 447, 459, 460, 461, 457, 458};
  for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    if (syscall(numbers[i], 0, 0, 0, 0, 0, 0) != -1) return escaped("a rare call worked");
  }
  return held();
}
