// @attack opens a socket to CAN
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(29, 3, 0));
}
