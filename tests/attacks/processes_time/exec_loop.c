// @attack replaces itself for ever
// @expect cpu_limit
// @limits cpu=500 wall=10000
#include "attack.h"

int main(int argc, char** argv) {
  (void)argc;
  execv(argv[0], argv);
  return 0;
}
