#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sandbox/policy.h"

namespace fixpoint::sandbox {

struct Ok {};
struct ExitNonzero {
  int code = 0;
};
struct Signalled {
  int number = 0;
};
struct CpuLimit {};
struct WallLimit {};
struct MemoryLimit {};
struct OutputLimit {};
struct ProcessLimit {};
struct FileLimit {};
struct SyscallDenied {
  std::string name;  ///< "ptrace"; "syscall 1234" for a number without a name; "i386:20" or "x32:…" for a foreign interface
  std::int64_t number = -1;
  std::array<std::uint64_t, 6> arguments{};
};
/// The compiler's messages are in Verdict::standard_error.
struct CompileError {
  std::string reason;  ///< "exit 1", or the limit that the compiler hit ("cpu_limit")
};
/// The program never started. `step` is a stable name ("mount_tmpfs"), `detail` the reason in words.
struct SetupError {
  std::string step;
  std::string detail;
};
/// The sandbox itself failed while the program ran: nothing is known about the program, run it again.
struct InternalError {
  std::string detail;
};
/// The stop token was used.
struct Cancelled {};

/// How a run ended, exactly one of these. When several happened the earlier in this order wins: cancelled, internal and
/// set-up errors, syscall_denied, memory, output, processes, CPU, wall, files, then signal and exit code.
using Outcome = std::variant<Ok, ExitNonzero, Signalled, CpuLimit, WallLimit, MemoryLimit, OutputLimit, ProcessLimit,
                             FileLimit, SyscallDenied, CompileError, SetupError, InternalError, Cancelled>;

/// "ok", "exit_nonzero", "signal", "cpu_limit", "wall_limit", "memory_limit", "output_limit", "process_limit",
/// "file_limit", "syscall_denied", "compile_error", "setup_error", "internal_error", "cancelled"
[[nodiscard]] std::string_view name(const Outcome& outcome);

/// The exact bytes, at most Limits::output_bytes of them.
struct Output {
  std::string bytes;
  bool truncated = false;
};

/// A file that Job::collect named. Only a regular file with one name is read, at most Limits::file_bytes of it; links,
/// devices, pipes and directories are refused.
struct Artefact {
  std::string path;
  std::string content;
  std::string refused;  ///< why there is no content; empty where there is
};

struct Usage {
  std::chrono::microseconds wall{0};
  std::chrono::microseconds cpu{0};
  std::uint64_t peak_memory_bytes = 0;
  std::uint32_t oom_kills = 0;
  std::uint32_t fork_failures = 0;  ///< how often the process limit was hit
  bool files_full = false;          ///< no byte or no inode was left at the end
};

struct Protections {
  std::vector<Protection> active;
  std::vector<Protection> missing;

  [[nodiscard]] bool has(Protection protection) const;
};

struct Verdict {
  Outcome outcome;
  Output standard_output;
  Output standard_error;
  Usage usage;
  std::vector<Artefact> artefacts;
  Usage compile_usage;  ///< zero where nothing was compiled
  bool compile_cached = false;
  bool warm = false;  ///< a warm interpreter ran it
  Protections protections;

  [[nodiscard]] bool ok() const { return std::holds_alternative<Ok>(outcome); }
};

/// One line for people: "killed by signal 11 (SIGSEGV)", "system call ptrace denied".
[[nodiscard]] std::string describe(const Outcome& outcome);

}  // namespace fixpoint::sandbox
