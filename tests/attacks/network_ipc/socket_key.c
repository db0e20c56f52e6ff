// @attack opens a socket to IPsec keys
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(15, 3, 0));
}
