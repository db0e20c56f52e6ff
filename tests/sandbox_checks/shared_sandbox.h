#pragma once

#include "sandbox/check.h"

#include <gtest/gtest.h>

namespace fixpoint::sandbox {

// One sandbox for all tests of a process: starting it is not what they test.
inline Sandbox& shared_sandbox() {
  static auto sandbox = Sandbox::start();
  if (!sandbox) throw std::runtime_error("no sandbox on this host: " + sandbox.error().message());
  return *sandbox;
}

inline std::string explain(const CheckResult& result) {
  std::string out = std::string(name(result.level)) + (result.passed ? " passed" : " failed") + "; error: " + result.error;
  for (const std::string& note : result.notes) out += "; note: " + note;
  for (const TestResult& test : result.tests) {
    if (test.outcome == TestOutcome::passed) continue;
    out += "\n  " + std::string(name(test.outcome)) + " " + test.test + " got " + test.got + " expected " + test.expected + " message " + test.message;
    for (const SourceFrame& frame : test.frames) out += "\n    " + frame.file + ":" + std::to_string(frame.line) + " " + frame.function + " " + frame.text;
  }
  for (const Verdict& verdict : result.verdicts) out += "\n  verdict " + describe(verdict.outcome) + "\n" + verdict.standard_error.bytes.substr(0, 2000);
  return out;
}

}  // namespace fixpoint::sandbox
