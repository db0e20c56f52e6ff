// @attack opens a socket to Bluetooth
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(31, 3, 0));
}
