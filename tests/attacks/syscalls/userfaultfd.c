// @attack stalls the kernel at a page of its choice
// @expect denied userfaultfd
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_userfaultfd, 1));
}
