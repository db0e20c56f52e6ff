// @attack runs a program from memory in the hope of a fresh filter
// @expect denied ptrace
#include "attack.h"

int main(void) {
  unsigned char bytes[256];
  const long size = tiny_program(bytes, SYS_ptrace);
  const int fd = (int)syscall(SYS_memfd_create, "x", 0);
  if (fd < 0 || write(fd, bytes, (size_t)size) != size) return held();
  char* arguments[] = {"x", 0};
  char* environment[] = {0};
  syscall(SYS_execveat, fd, "", arguments, environment, 0x1000);
  return broken("execveat");
}
