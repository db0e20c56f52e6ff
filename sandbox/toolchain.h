#pragma once

#include <span>
#include <string>
#include <vector>

#include "sandbox/job.h"
#include "sandbox/policy.h"

namespace fixpoint::sandbox {

/// How programs of one language are built and started. Paths are absolute and resolved; PATH is never searched, so that a
/// shim in a home directory cannot stand in for an interpreter.
struct Toolchain {
  Language language = Language::python;
  std::string version;                      ///< first line of what the tool says about itself, or the resolved file name
  std::string source_name;                  ///< "main.py"
  std::vector<std::string> compile;         ///< empty for interpreted languages; reads source_name, writes `artefact`
  std::vector<std::string> static_linking;  ///< added to `compile` unless a job needs shared libraries; empty where it can't be
  std::string artefact;                     ///< "main", "main.jar"
  std::vector<std::string> run;
  std::vector<std::string> compile_roots;   ///< host paths that the compiler sees, read-only
  std::vector<std::string> run_roots;       ///< host paths that the program sees, read-only
  std::vector<std::string> environment;     ///< "NAME=value"
  bool needs_proc = false;                  ///< a /proc that shows the run's own processes only
  std::uint64_t memory_floor_bytes = 0;     ///< what the runtime takes before the program's first line
  std::uint32_t process_floor = 0;          ///< threads of the runtime, added to Limits::processes
};

/// What was looked for and what was found.
struct ToolchainReport {
  Language language = Language::python;
  bool available = false;
  std::string detail;  ///< the version, or where it was looked for
};

struct Toolchains {
  std::vector<Toolchain> found;
  std::vector<ToolchainReport> reports;  ///< one for each language

  [[nodiscard]] const Toolchain* find(Language language) const;
};

/// Looks in /usr/bin, /usr/local/bin, /usr/lib/go*/bin, /usr/local/go/bin and their like; starts nothing.
[[nodiscard]] Toolchains find_toolchains();

}  // namespace fixpoint::sandbox
