// @attack changes the compiled program that the cache would give to others
// @expect held
#include "attack.h"

int main(int argc, char** argv) {
  (void)argc;
  const int direct = open(argv[0], O_RDWR);
  const int linked = open("/proc/self/exe", O_RDWR);
  if (direct >= 0 || linked >= 0) return escaped("its own file is writable");
  if (truncate(argv[0], 0) == 0) return escaped("truncated");
  return held();
}
