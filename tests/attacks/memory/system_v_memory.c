// @attack takes shared memory that outlives it
// @expect held
#include "attack.h"
#include <sys/ipc.h>
#include <sys/shm.h>

int main(void) {
  return tried(shmget(0x5afe, 1 << 20, IPC_CREAT | 0666));
}
