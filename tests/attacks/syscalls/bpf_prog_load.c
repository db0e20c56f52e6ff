// @attack loads a BPF program
// @expect denied bpf
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_bpf, 5, calloc(1, 128), 72));
}
