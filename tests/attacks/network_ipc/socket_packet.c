// @attack opens a socket to raw packets
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(17, 3, 0));
}
