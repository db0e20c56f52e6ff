// @attack asks for another Landlock domain
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(444, 0, 0, 1) >= 0 && syscall(446, 0, 0) == 0 ? 0 : -1);
}
