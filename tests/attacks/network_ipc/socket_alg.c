// @attack opens a socket to the kernel's ciphers
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(38, 5, 0));
}
