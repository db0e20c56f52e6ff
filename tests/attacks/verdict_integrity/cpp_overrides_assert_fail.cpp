// @attack brings a failure function of its own
#include <unistd.h>
extern "C" void __assert_fail(const char*, const char*, unsigned, const char*) noexcept { _exit(0); }
int f(int) { return 0; }
