#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "sandbox/job.h"
#include "sandbox/toolchain.h"
#include "sandbox/verdict.h"

namespace fixpoint::sandbox {

/// Which host is good enough. Without namespaces at all (no root, and no user namespaces) none is.
enum class Strength : std::uint8_t {
  isolated,  ///< namespaces, a read-only root, seccomp and rlimits are required; the rest may be missing and is then said
  degraded,  ///< by the operator's explicit word: run although one of these is missing; every verdict names it
};

struct Options {
  Strength accept = Strength::isolated;
  /// Switched off as if the host lacked them; they are reported as missing.
  std::vector<Protection> without = {};
  /// Keep prepared interpreters and sandboxes ready.
  bool warm = true;
  std::uint32_t max_runs = 64;  ///< alive at once; further calls of run wait
  std::uint64_t compile_cache_bytes = 256ULL << 20;
  /// For tests of faults: the set-up step of this name does not go well in any run.
  std::string fault_step = {};
  Fault fault = Fault::fails;
};

struct StartError {
  std::string step;
  std::string detail;

  [[nodiscard]] std::string message() const { return step + ": " + detail; }
};

/// A protection and the probe that proved it (or what the probe saw instead).
struct Probe {
  Protection protection = Protection::seccomp;
  bool active = false;
  std::string proof;
};

/// Runs untrusted programs, each in a sandbox of its own that nothing outlives.
///
/// Thread contract: `run` may be called from many threads at once. Owns the broker, a small process without threads or
/// heap that does everything that needs privilege; the destructor ends it and every run with it. A broker that died is
/// replaced by the next run.
class Sandbox {
 public:
  /// Fails where the host is weaker than `options.accept`.
  [[nodiscard]] static tl::expected<Sandbox, StartError> start(Options options = {});

  Sandbox(Sandbox&&) noexcept;
  Sandbox& operator=(Sandbox&&) noexcept;
  ~Sandbox();

  /// Blocks until the program and everything it started is gone. Never throws for what a program does.
  [[nodiscard]] Verdict run(const Job& job, std::stop_token stop = {});

  /// What stands around every run on this host.
  [[nodiscard]] const Protections& protections() const;
  [[nodiscard]] const std::vector<Probe>& probes() const;
  [[nodiscard]] const Toolchains& toolchains() const;

  /// For tests of faults and leaks: the broker's process id (0 when it is not running).
  [[nodiscard]] int broker_pid() const;

 private:
  class Impl;
  explicit Sandbox(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::sandbox
