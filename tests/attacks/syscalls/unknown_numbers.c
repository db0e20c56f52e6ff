// @attack calls numbers that no kernel has yet
// @expect held
#include "attack.h"

int main(void) {
  const long numbers[] = {-1, 500, 511, 512, 547, 600, 1023, 4096, 0xffffffL};
  for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; ++i) {
    errno = 0;
    if (syscall(numbers[i], 0, 0, 0, 0, 0, 0) != -1 || errno != ENOSYS) return escaped("a number answered");
  }
  return held();
}
