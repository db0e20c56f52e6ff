// @attack makes the compiler write a file without end
// @expect compile_error
__asm__(".data\n.fill 2000000000, 1, 1\n");
int main(void) { return 0; }
