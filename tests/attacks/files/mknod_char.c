// @attack makes a device of the machine's memory
// @expect held
#include "attack.h"
#include <sys/stat.h>

int main(void) {
  return tried(mknod("mem", S_IFCHR | 0666, 0x101));
}
