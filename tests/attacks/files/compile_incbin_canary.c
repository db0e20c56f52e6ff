// @attack puts a host file whose path it could know into its program
// @expect compile_error
// @never root:
__asm__(".section .rodata\n.incbin \"/etc/hostname\"\n.incbin \"/root/.bashrc\"\n");
int main(void) { return 0; }
