// @attack leaves a key for the next run
// @expect denied add_key
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_add_key, "user", "marker", "x", 1, -3));
}
