// @attack opens a socket to RDS
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(21, 5, 0));
}
