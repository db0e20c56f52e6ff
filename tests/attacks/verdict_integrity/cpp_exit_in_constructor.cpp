// @attack ends well before main begins
#include <cstdlib>
struct Early {
  Early() { std::exit(0); }
} early;
int f(int) { return 0; }
