// @attack makes a device of the first disk
// @expect held
#include "attack.h"
#include <sys/stat.h>

int main(void) {
  return tried(mknod("disk", S_IFBLK | 0666, 0x800));
}
