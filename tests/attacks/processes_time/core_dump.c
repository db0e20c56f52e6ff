// @attack dies in the hope of a core file
// @expect signal
#include "attack.h"

int main(void) {
  abort();
}
