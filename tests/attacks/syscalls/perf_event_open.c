// @attack counts events of the whole machine
// @expect denied perf_event_open
#include "attack.h"

int main(void) {
  return tried(syscall(SYS_perf_event_open, calloc(1, 128), -1, 0, -1, 0));
}
