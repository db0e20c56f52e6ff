// @attack opens a socket to IPv6
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(10, 1, 0));
}
