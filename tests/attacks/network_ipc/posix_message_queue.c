// @attack leaves a POSIX message queue
// @expect held
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_mq_open, "left", O_CREAT | O_RDWR, 0666, 0));
}
