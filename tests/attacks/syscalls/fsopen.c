// @attack opens a file system by the new calls
// @expect denied fsopen
#include "attack.h"

int main(void) {
  return tried(syscall(430, "tmpfs", 0));
}
