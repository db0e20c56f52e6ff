// @attack opens a socket to the hypervisor
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  return tried(socket(40, 1, 0));
}
