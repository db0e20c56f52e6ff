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

// A whole program of 132 bytes: makes one system call (no arguments) and ends with its result as exit code.
static inline long tiny_program(unsigned char* bytes, unsigned char call) {
  static const unsigned char program[132] = {
      0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0, 1, 0, 0, 0, 0x78, 0, 0x40, 0, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0,
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0,
      1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0,
      132, 0, 0, 0, 0, 0, 0, 0, 132, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0,
      // mov al, call; syscall; mov edi, eax; push 60; pop rax; syscall
      0xb0, 0, 0x0f, 0x05, 0x89, 0xc7, 0x6a, 60, 0x58, 0x0f, 0x05, 0xf4};
  memcpy(bytes, program, sizeof program);
  bytes[121] = call;
  return sizeof program;
}
