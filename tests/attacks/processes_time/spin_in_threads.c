// @attack spins in threads that each stay below the limit
// @expect cpu_limit
// @limits cpu=600 wall=90000
#include <pthread.h>

static void* spin(void* unused) {
  for (volatile long i = 0;; ++i) {
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  for (int i = 0; i < 7; ++i) pthread_create(&thread, 0, spin, 0);
  spin(0);
}
