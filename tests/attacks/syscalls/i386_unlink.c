// @attack tries a file call by the 32-bit gate
// @expect denied i386:unlink | signal
#include "attack.h"

int main(void) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(10L), "b"(0L) : "memory");
  return escaped("int 0x80");
}
