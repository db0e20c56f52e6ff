// @attack opens files without end
// @expect held
#include "attack.h"

int main(void) {
  for (int i = 0; i < 1000000; ++i) {
    if (dup(0) < 0) return held();
  }
  return escaped("a million descriptors");
}
