// @attack writes into the memory of its parent
// @expect denied process_vm_writev
#include "attack.h"
#include <sys/uio.h>

int main(void) {
  char here[64] = {0};
  struct iovec local = {here, sizeof here}, remote = {(void*)0x7ffff000, sizeof here};
  return tried(process_vm_writev(getppid(), &local, 1, &remote, 1, 0));
}
