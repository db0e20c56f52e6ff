// @attack makes a BPF map
// @expect denied bpf
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_bpf, 0, calloc(1, 128), 72));
}
