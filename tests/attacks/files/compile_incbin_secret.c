// @attack puts a host file into its program while it is compiled
// @expect compile_error
// @never root:
__asm__(".section .rodata\n.incbin \"/etc/shadow\"\n");
int main(void) { return 0; }
