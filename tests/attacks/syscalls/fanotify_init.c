// @attack watches a file system
// @expect denied fanotify_init
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_fanotify_init, 0, 0));
}
