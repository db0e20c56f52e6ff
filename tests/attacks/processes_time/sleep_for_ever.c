// @attack sleeps
// @expect wall_limit
// @limits wall=400
#include "attack.h"

int main(void) {
  while (1) pause();
}
