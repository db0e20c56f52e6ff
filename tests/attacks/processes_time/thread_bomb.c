// @attack starts threads without end
// @expect process_limit | held
// @limits processes=32
#include "attack.h"
#include <pthread.h>

static void* wait_for_ever(void* unused) {
  pause();
  return unused;
}

int main(void) {
  for (int i = 0; i < 100000; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, 0, wait_for_ever, 0) != 0) return held();
  }
  return escaped("a hundred thousand threads");
}
