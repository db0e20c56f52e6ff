#pragma once

#include <memory>
#include <optional>
#include <string>

#include "agent/checker.h"

namespace fixpoint::sandbox {
class Sandbox;
struct Toolchains;
}

namespace fixpoint::agent {

struct SandboxCheckerOptions {
  std::uint64_t memory_bytes = 512ULL << 20;
  int max_failures = 3;              ///< failing tests that are described
  std::size_t text_bytes = 1'000;    ///< of each value or output that is kept
  int trace_head = 12;               ///< trace lines kept before the gap, and after it
  int trace_tail = 12;
};

/// Judges programs in `sandbox`, which must outlive the checker; each call runs on its caller's thread.
[[nodiscard]] std::unique_ptr<Checker> make_sandbox_checker(sandbox::Sandbox& sandbox, SandboxCheckerOptions options = {});

/// Why there can be no program in this language here: no sandbox for it, or no toolchain on this machine.
[[nodiscard]] std::optional<std::string> refused_language(const std::string& language, const sandbox::Toolchains& toolchains);

}  // namespace fixpoint::agent
