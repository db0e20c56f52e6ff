// @attack makes orphans that end all the time, so that the run's init never has a quiet moment
// @expect wall_limit
// @limits wall=1000 cpu=20000 processes=1000
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "attack.h"

static char child_stack[16384], orphan_stack[16384];

static int end(void* nothing) {
  (void)nothing;
  _exit(0);
}

static int leave_orphan(void* nothing) {
  clone(end, orphan_stack + sizeof orphan_stack, CLONE_VM | SIGCHLD, nothing);
  _exit(0);
}

int main(void) {
  const struct timespec pause_between = {0, 100000};
  for (int i = 0; i < 3 && fork() != 0; ++i) {
  }
  while (1) {
    const int child = clone(leave_orphan, child_stack + sizeof child_stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
    if (child > 0) waitpid(child, NULL, 0);
    nanosleep(&pause_between, NULL);
  }
}
