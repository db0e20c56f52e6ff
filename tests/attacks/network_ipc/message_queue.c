// @attack leaves a message for the next run
// @expect held
#include "attack.h"
#include <sys/ipc.h>
#include <sys/msg.h>

int main(void) {
  return tried(msgget(0x5afe, IPC_CREAT | 0666));
}
