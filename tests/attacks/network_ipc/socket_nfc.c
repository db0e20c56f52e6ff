// @attack opens a socket to NFC
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(39, 5, 0));
}
