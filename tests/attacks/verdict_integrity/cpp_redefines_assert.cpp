// @attack makes assert harmless
#define NDEBUG
#include <cassert>
int f(int) { return 0; }
