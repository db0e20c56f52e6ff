// @attack feeds the compiler an endless file
// @expect compile_error
#include "/dev/zero"
int main(void) { return 0; }
