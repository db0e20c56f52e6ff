// @attack runs a copy of itself from memory in the hope of a fresh filter
// @expect denied ptrace
#include "attack.h"
#include <fcntl.h>

int main(int argc, char** argv) {
  if (argc > 1) return tried(syscall(SYS_ptrace, 0, 0, 0, 0));
  static char bytes[1 << 20];
  const int from = open(argv[0], O_RDONLY), to = (int)syscall(SYS_memfd_create, "x", 0);
  const long size = read(from, bytes, sizeof bytes);
  if (from < 0 || to < 0 || size <= 0 || write(to, bytes, (size_t)size) != size) return held();
  char* args[] = {argv[0], "again", 0};
  char* env[] = {0};
  syscall(SYS_execveat, to, "", args, env, 0x1000);
  return held();
}
