// @attack prints without end from many children
// @expect output_limit
// @limits output=100K
#include "attack.h"

int main(void) {
  for (int i = 0; i < 8; ++i) {
    if (fork() == 0) {
      while (1) puts("child child child child child child");
    }
  }
  pause();
}
