#pragma once

#include <sys/time.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

namespace fixpoint::sandbox::detail {

/// First frame: what the broker must do without (bits of Protection), and whether it keeps cells ready.
struct HelloFrame {
  std::uint32_t without = 0;
  std::uint32_t ready_cells = 0;
  std::uint32_t fault_step = 0;  ///< for tests: Step, and what becomes of the process in it (Fault)
  std::uint32_t fault = 0;
};

/// The broker's answer: what it has, with the probe that proved it.
struct ProbesFrame {
  struct Item {
    std::uint32_t protection = 0;
    bool active = false;
    std::string proof;
  };
  std::vector<Item> items;
};

struct FrameFile {
  std::string path;
  std::string content;
  bool executable = false;
};

/// A prepared root file system: what a run sees, read-only; and the interpreter that is kept ready in it, if any.
struct TemplateFrame {
  std::uint32_t id = 0;
  std::vector<std::string> roots;    ///< absolute host paths
  std::vector<FrameFile> files;      ///< placed in the root's directory .fixpoint
  std::vector<std::string> zygote;   ///< its command; empty: none
  std::vector<std::string> environment;
};

/// To a zygote: fork a program into a run. Descriptors beside it: the init's pidfd, the link to the init, stdin, stdout,
/// stderr, questions and answers where `judge` says so, then cgroup.procs files.
struct ForkFrame {
  std::uint32_t init = 0;  ///< its pid, returned in reports
  std::uint32_t change_uid = 0;
  std::uint32_t uid = 0;
  std::uint32_t nested_user_namespace = 0;
  std::uint32_t namespaces = 0;  ///< CLONE_NEW… of the init to enter
  std::uint32_t landlock_version = 0;
  std::uint32_t notify = 0;
  std::uint32_t judge = 0;
  std::uint32_t wait_for_job = 0;
  std::uint32_t processes = 0;
  std::uint32_t fault_step = 0;
  std::uint32_t fault = 0;
  std::uint64_t cpu_milliseconds = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t address_space_bytes = 0;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
};

/// A seccomp program, as the kernel takes it (8 bytes an instruction).
struct PolicyFrame {
  std::uint32_t id = 0;
  std::vector<std::uint64_t> program;
};

/// Start one program. Descriptors beside the frame: stdin, stdout, stderr, report, then those that the flags announce.
struct LaunchFrame {
  enum Flag : std::uint32_t {
    mount_proc = 1,
    judge = 2,           ///< two more descriptors: questions, answers
    executable = 4,      ///< one more descriptor, the last: run it instead of arguments[0]
    fork_zygote = 8,     ///< run in a fork of the template's prepared interpreter
    limit_address_space = 16,
    keep_box = 32,       ///< the service wants a handle of the working directory, to collect files from
    wait_for_job = 64,   ///< the zygote's fork reads what it runs from descriptor 3: a LaunchFrame, and the judge's two
                         ///< descriptors where that says so
    place_executable = 128,  ///< that descriptor's bytes are what the first of `files` holds; arguments[0] is run
  };
  static constexpr std::uint32_t kAllFlags = 255;

  std::uint32_t template_id = 0;
  std::uint32_t policy_id = 0;
  std::uint32_t flags = 0;
  std::uint64_t cpu_milliseconds = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint32_t inodes = 0;
  std::uint32_t processes = 0;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::vector<FrameFile> files;

  [[nodiscard]] bool has(Flag flag) const { return (flags & flag) != 0; }
  /// How many descriptors must come with it.
  [[nodiscard]] std::size_t descriptors() const {
    return 4U + (has(judge) ? 2U : 0U) + (has(Flag::executable) ? 1U : 0U);
  }
};

using Frame = std::variant<HelloFrame, ProbesFrame, TemplateFrame, PolicyFrame, LaunchFrame, ForkFrame>;

struct FrameError {
  std::size_t offset = 0;
  std::string_view field;
};

[[nodiscard]] std::vector<std::byte> encode(const Frame& frame);

/// Refuses anything that is not exactly one frame: unknown kinds and flags, counts over their bounds, unsafe paths,
/// embedded zero bytes, bytes left over.
[[nodiscard]] tl::expected<Frame, FrameError> parse_frame(std::span<const std::byte> bytes);

/// Relative, at most 4 components of [A-Za-z0-9._-] that are at most 100 long, neither "." nor ".." nor starting with "-".
[[nodiscard]] bool is_safe_path(std::string_view path);

/// What the broker and a run's init tell the service. An init may say several in one message.
struct Report {
  enum class Kind : std::uint32_t {
    running = 1,  ///< init: the program runs; values: CPU counter follows, fork counter follows, CPU us before, when it began (ns
                  ///< of the steady clock); with the init's pidfd, those counters, and the box where it was asked for
    failed,       ///< values: step, errno
    denied,       ///< values: architecture, number, then up to six arguments
    ended,        ///< init: values: wait status, user us, system us, peak resident bytes, files full
    end,          ///< monitor to broker: the run is to end now
    ready,        ///< zygote to broker: the interpreter stands; values: pid of its trial (0: it has none)
    memory,       ///< broker to zygote: with its /proc/PID/maps and its trial's pagemap; without both where one can't be seen
    forked,       ///< zygote to broker: values: pid of the run's init, pid of its program (0: the fork failed)
    child_ended,  ///< broker to init: values: pid, wait status, user us, system us, peak resident bytes
    accounted,    ///< init that is alone, else broker, always last: values: CPU us, peak bytes, OOM kills, fork failures, valid mask
    count,
  };
  enum Valid : std::uint64_t { cpu = 1, memory = 2, processes = 4 };

  Kind kind = Kind::failed;
  std::uint32_t reserved = 0;
  std::uint64_t values[8] = {};
};

[[nodiscard]] tl::expected<Report, FrameError> parse_report(std::span<const std::byte> bytes);

/// Of a process's usage, as reports have it.
inline std::uint64_t microseconds_of(const timeval& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(time.tv_usec);
}

}  // namespace fixpoint::sandbox::detail
