// @attack calls the kernel by the 32-bit gate, where numbers mean other calls
// @expect denied i386:getpid | signal
#include "attack.h"

int main(void) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory");
  return escaped("int 0x80");
}
