// @attack asks for a key that another run left
// @expect denied request_key
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_request_key, "user", "marker", 0, -3));
}
