// @attack opens a socket to SMC
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(43, 1, 0));
}
