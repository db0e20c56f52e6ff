// @attack shares semaphores with other runs
// @expect held
#include "attack.h"
#include <sys/ipc.h>
#include <sys/sem.h>

int main(void) {
  return tried(semget(0x5afe, 1, IPC_CREAT | 0666));
}
