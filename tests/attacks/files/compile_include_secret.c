// @attack reads a host file through the compiler
// @expect compile_error
// @never root:
// @never SECRET
#include "/etc/shadow"
#include "/etc/passwd"
int main(void) { return 0; }
