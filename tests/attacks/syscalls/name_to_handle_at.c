// @attack asks for handles that hold outside
// @expect denied name_to_handle_at
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_name_to_handle_at, -100, "/", (int[34]){128}, (int[1]){0}, 0));
}
