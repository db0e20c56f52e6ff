// @attack opens a socket to XDP
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(44, 3, 0));
}
