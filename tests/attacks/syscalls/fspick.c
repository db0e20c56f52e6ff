// @attack reconfigures a file system
// @expect denied fspick
#include "attack.h"

int main(void) {
  return tried(syscall(433, -100, "/", 0));
}
