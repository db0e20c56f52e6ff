// @attack hides a socket family among high bits
// @expect held
#include "attack.h"
#include <sys/socket.h>

int main(void) {
  // The kernel reads 32 bits: 2 is AF_INET whatever stands above.
  return tried(syscall(SYS_socket, 0x100000002UL, SOCK_STREAM, 0));
}
