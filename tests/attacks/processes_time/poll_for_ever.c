// @attack waits for nothing
// @expect wall_limit
// @limits wall=400
#include "attack.h"
#include <poll.h>

int main(void) {
  while (1) poll(0, 0, -1);
}
