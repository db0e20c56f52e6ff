// @attack ends its main thread only
// @expect cpu_limit
// @limits cpu=400 wall=90000
#include "attack.h"
#include <pthread.h>

static void* spin(void* unused) {
  for (volatile long i = 0;; ++i) {
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, spin, 0);
  pthread_exit(0);
}
