#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/policy.h"

namespace fixpoint::sandbox {

/// A file in the program's working directory before it starts. `path` is relative, at most 4 components of
/// [A-Za-z0-9._-]; a component that is "." or ".." or starts with "-" is refused (verdict setup_error, nothing is written).
struct File {
  std::string path;
  std::string content;
  bool executable = false;
};

/// The trusted half of a conversation with a driver in the jail. The driver reads what the judge sends on file
/// descriptor 3 and writes answers to descriptor 4; neither stdin nor stdout is involved.
/// Called on the thread that called Sandbox::run, never after it has returned. Must not block.
class Judge {
 public:
  struct Step {
    std::string send;       ///< appended to what the driver can read
    bool close = false;     ///< the driver sees end of file after it has read everything
    bool finished = false;  ///< nothing more is wanted: the run is killed, and the verdict is that of a normal end
  };

  virtual ~Judge() = default;
  /// Called once the program has started.
  [[nodiscard]] virtual Step start() = 0;
  /// `bytes` are the next bytes that the driver wrote, cut anywhere. All bytes together are limited by
  /// Limits::output_bytes (verdict output_limit).
  [[nodiscard]] virtual Step receive(std::string_view bytes) = 0;
  /// The driver closed its end, or the run is over.
  virtual void closed() {}
};

/// How C, C++ (and Rust, Go) sources are compiled.
enum class Build : std::uint8_t {
  optimised,
  checked,  ///< address and undefined-behaviour sanitizers, debug information (C and C++ only)
};

enum class Start : std::uint8_t {
  warm,  ///< a fork of a prepared interpreter or a worker started ahead, where the language has one
  cold,
};

/// One untrusted program and what it may use.
struct Job {
  Language language = Language::python;
  std::string source;
  std::string input = {};  ///< stdin; end of file follows
  std::vector<std::string> arguments = {};
  std::vector<File> files = {};
  Limits limits = {};
  Build build = Build::optimised;
  Start start = Start::warm;
  std::shared_ptr<Judge> judge = nullptr;
};

}  // namespace fixpoint::sandbox
