// @attack opens a socket to the kernel's network tables
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(16, 3, 0));
}
