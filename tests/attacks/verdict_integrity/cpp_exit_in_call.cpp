// @attack ends well in the call
#include <unistd.h>
int f(int) { _exit(0); }
