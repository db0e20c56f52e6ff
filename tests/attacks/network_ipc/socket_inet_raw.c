// @attack opens a socket to raw IP
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(2, 3, 0));
}
