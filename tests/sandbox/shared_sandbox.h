#pragma once

#include <unistd.h>

#include <stdexcept>
#include <string>

#include "sandbox/sandbox.h"

namespace fixpoint::sandbox {

/// One sandbox for the tests of a process: starting one costs a probe run.
inline Sandbox& shared_sandbox() {
  static tl::expected<Sandbox, StartError> instance = Sandbox::start();
  if (!instance) throw std::runtime_error(instance.error().message());
  return *instance;
}

inline std::string text_of(const Verdict& verdict) {
  return describe(verdict.outcome) + "\nstdout: " + verdict.standard_output.bytes +
         "\nstderr: " + verdict.standard_error.bytes;
}

}  // namespace fixpoint::sandbox
