// @attack makes a setuid program and runs it
// @expect held
#include "attack.h"

#include <sys/stat.h>
#include <sys/wait.h>

int main(void) {
  unsigned char bytes[256];
  const long size = tiny_program(bytes, SYS_geteuid);
  const int fd = open("copy", O_CREAT | O_WRONLY, 0755);
  if (fd < 0 || write(fd, bytes, (size_t)size) != size) return broken("copy");
  close(fd);
  chown("copy", 0, 0);
  chmod("copy", 06755);
  const int child = fork();
  if (child == 0) {
    execl("./copy", "copy", (char*)0);
    _exit((int)(geteuid() & 0xff));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == (int)(geteuid() & 0xff) ? held() : escaped("another user");
}
