// @attack makes a setuid copy of itself and runs it
// @expect held
#include "attack.h"
#include <sys/stat.h>
#include <sys/wait.h>

int main(int argc, char** argv) {
  static char bytes[1 << 20];
  if (argc > 1) return geteuid() == 0 && getuid() != 0 ? escaped("it is root now") : held();
  const uid_t before = geteuid();
  (void)before;
  const int from = open(argv[0], O_RDONLY), to = open("copy", O_CREAT | O_WRONLY, 0755);
  const long size = read(from, bytes, sizeof bytes);
  if (from < 0 || to < 0 || write(to, bytes, (size_t)size) != size) return broken("copy");
  close(to);
  chmod("copy", 06755);
  execl("./copy", "copy", "again", (char*)0);
  return held();
}
