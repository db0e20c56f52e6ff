// @attack moves a mount
// @expect denied move_mount
#include "attack.h"

int main(void) {
  return tried(syscall(429, -100, "/", -100, "/tmp", 0));
}
