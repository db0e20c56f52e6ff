// For the hostile programs in C: how they say what came of them.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int held(void) {
  puts("held");
  return 0;
}

static inline int escaped(const char* what) {
  printf("ESCAPED: %s\n", what);
  return 0;
}

// The attack could not even be tried: the test must not count it as held.
static inline int broken(const char* what) {
  printf("BROKEN: %s: %s\n", what, strerror(errno));
  return 0;
}

// A call that must not work.
static inline int tried(long result) { return result == -1 ? held() : escaped("the call worked"); }

static inline int open_any(void) { return open(".", O_RDONLY); }
