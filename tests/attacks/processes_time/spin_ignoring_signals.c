// @attack spins and ignores the signals of its limit
// @expect cpu_limit
// @limits cpu=300 wall=90000
#include <signal.h>

int main(void) {
  for (int s = 1; s < 65; ++s) signal(s, SIG_IGN);
  for (volatile long i = 0;; ++i) {
  }
}
