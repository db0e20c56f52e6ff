#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/policy.h"

namespace fixpoint::sandbox {

/// A file in the program's working directory before it starts. `path` is relative, at most 4 components of
/// [A-Za-z0-9._-]; a component that is "." or ".." or starts with "-" is refused (verdict setup_error, nothing is written).
struct File {
  std::string path;
  std::string content;
  bool executable = false;
  bool compile_only = false;  ///< for the compiler; where the program runs it is not
};

/// Two pipe ends that the caller made for a conversation with a driver in the jail. The driver reads `questions` on file
/// descriptor 3 and writes to `answers` on descriptor 4; stdin and stdout are not involved. Borrowed for the call of run:
/// the sandbox keeps no copy for longer than a moment after the start, so the caller sees end of file when the driver is gone.
struct JudgeChannel {
  int questions_fd = -1;
  int answers_fd = -1;
};

/// What happens at Limits::output_bytes.
enum class Overflow : std::uint8_t {
  kill,     ///< the run ends with output_limit
  discard,  ///< the head is kept, the rest is read and dropped, the run goes on; Output::truncated is set
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
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to the toolchain's own
  std::vector<std::string> compile_flags = {};                        ///< appended to the toolchain's own
  Limits limits = {};
  Limits compile_limits = {.cpu = std::chrono::seconds(20), .wall = std::chrono::seconds(60),
                           .memory_bytes = 1ULL << 30, .output_bytes = 64 << 10, .file_bytes = 256ULL << 20};
  Overflow overflow = Overflow::kill;
  Start start = Start::warm;
  bool shared_libraries = false;  ///< the program is linked with them even where it could do without (sanitizers can't)
  bool needs_proc = false;  ///< mount a /proc that shows the run's own processes (sanitizers read /proc/self/maps)
  std::optional<JudgeChannel> judge = std::nullopt;
  std::vector<std::string> collect = {};  ///< files of the working directory to return in Verdict::artefacts
};

}  // namespace fixpoint::sandbox
