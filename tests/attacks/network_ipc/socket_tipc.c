// @attack opens a socket to TIPC
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(30, 1, 0));
}
