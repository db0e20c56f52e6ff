#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fixpoint::sandbox {

enum class Language : std::uint8_t { python, c, cpp, javascript, bash, java, go, rust };

inline constexpr Language kLanguages[] = {Language::python, Language::c,    Language::cpp, Language::javascript,
                                          Language::bash,   Language::java, Language::go,  Language::rust};

/// "python", "c", "cpp", "javascript", "bash", "java", "go", "rust"
[[nodiscard]] std::string_view name(Language language);
/// Also accepts "py", "c++", "js", "node", "sh", "golang", "rs".
[[nodiscard]] std::optional<Language> parse_language(std::string_view text);

/// What one run may use. Every limit has a verdict of its own.
struct Limits {
  std::chrono::milliseconds cpu{10'000};   ///< user and system time of all processes together
  std::chrono::milliseconds wall{30'000};  ///< looser than `cpu`: under load a run is judged by its CPU time
  std::uint64_t memory_bytes = 512ULL << 20;
  std::uint32_t processes = 64;  ///< processes and threads alive at once
  std::uint64_t output_bytes = 1ULL << 20;  ///< for stdout and for stderr, each
  std::uint64_t file_bytes = 64ULL << 20;   ///< all files in the run's working and temporary directories together
  std::uint32_t inodes = 8192;

  bool operator==(const Limits&) const = default;
};

/// For tests of faults: what becomes of the process that takes the chosen set-up step.
enum class Fault : std::uint8_t {
  fails,  ///< the step does not succeed
  kills,  ///< it dies there
  waits,  ///< it stands there under the name "fixpoint-fault" until SIGUSR1 comes, at most a minute; then it goes on
};

/// One layer of the containment. A verdict lists which ones stood around the run and which ones the host lacks.
enum class Protection : std::uint8_t {
  user_namespace,  ///< only where the service is not root
  pid_namespace,
  mount_namespace,
  network_namespace,
  ipc_namespace,
  uts_namespace,
  cgroup_namespace,
  read_only_root,
  capped_tmpfs,
  separate_uid,  ///< only where the service is root
  no_new_privileges,
  no_capabilities,
  landlock,
  seccomp,
  seccomp_names,  ///< a denied call is reported by name (user notification)
  rlimits,
  cgroup_memory,
  cgroup_pids,
  cgroup_cpu,
  cgroup_kill,
};

[[nodiscard]] std::string_view name(Protection protection);
[[nodiscard]] std::optional<Protection> parse_protection(std::string_view text);

/// What the kernel does with a system call.
enum class Action : std::uint8_t {
  allow,
  enosys,       ///< "this kernel has no such call": the answer to everything that no rule names
  refuse,       ///< EPERM, silently: calls that harmless programs try and can do without
  no_family,    ///< EAFNOSUPPORT: sockets other than local ones
  no_terminal,  ///< ENOTTY
  deny,         ///< the run ends with the verdict syscall_denied, which names the call
};

/// Compares the low 32 bits of one argument: `(argument & mask) == value`. The high bits are ignored, as the kernel does
/// for the arguments that are 32-bit integers.
struct ArgumentTest {
  std::uint8_t index = 0;
  std::uint32_t mask = 0xffffffff;
  std::uint32_t value = 0;
};

/// `call` with all of `tests` true (none: always) has `action`. Rules of one call are tried in order.
struct SyscallRule {
  std::string_view call;
  Action action = Action::allow;
  std::vector<ArgumentTest> tests = {};
};

/// The rules for programs (or for compilers) of a language.
struct SyscallPolicy {
  std::vector<SyscallRule> rules;
};

[[nodiscard]] SyscallPolicy syscall_policy(Language language);

}  // namespace fixpoint::sandbox
