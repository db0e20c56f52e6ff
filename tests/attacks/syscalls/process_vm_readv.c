// @attack reads the memory of process 1
// @expect denied process_vm_readv
#include "attack.h"
#include <sys/uio.h>

int main(void) {
  char here[64];
  struct iovec local = {here, sizeof here}, remote = {(void*)0x400000, sizeof here};
  return tried(process_vm_readv(1, &local, 1, &remote, 1, 0));
}
