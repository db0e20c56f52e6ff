// @attack makes assert harmless
// @in-process may forge
#define NDEBUG
#include <cassert>
int f(int) { return 0; }
