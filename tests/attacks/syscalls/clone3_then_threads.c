// @attack uses clone3, whose flags no filter can see; threads must still work
// @expect held
#include "attack.h"
#include <pthread.h>

static void* work(void* seen) {
  *(int*)seen = 1;
  return seen;
}

int main(void) {
  unsigned long args[11] = {0x10000000, 0, 0, 0, 17};
  int seen = 0;
  pthread_t thread;
  if (syscall(435, args, sizeof args) != -1 || errno != ENOSYS) return escaped("clone3");
  if (pthread_create(&thread, 0, work, &seen) != 0 || pthread_join(thread, 0) != 0 || !seen) return broken("threads");
  return held();
}
