// @attack opens host files by their inode numbers
// @expect denied open_by_handle_at
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_open_by_handle_at, -100, (int[34]){8, 1, 2}, 0));
}
