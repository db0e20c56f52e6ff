#include "sandbox/verdict.h"

#include <algorithm>
#include <cstring>

namespace fixpoint::sandbox {

namespace {

constexpr std::string_view kNames[] = {"ok",           "exit_nonzero",  "signal",      "cpu_limit",      "wall_limit",
                                       "memory_limit", "output_limit",  "process_limit", "file_limit",   "syscall_denied",
                                       "compile_error", "setup_error",  "internal_error", "cancelled"};
static_assert(std::size(kNames) == std::variant_size_v<Outcome>);

std::string signal_text(int number) {
  const char* abbreviation = ::sigabbrev_np(number);
  const std::string text = "killed by signal " + std::to_string(number);
  return abbreviation == nullptr ? text : text + " (SIG" + abbreviation + ")";
}

struct Describe {
  std::string operator()(const Ok&) const { return "ended normally"; }
  std::string operator()(const ExitNonzero& o) const { return "exit code " + std::to_string(o.code); }
  std::string operator()(const Signalled& o) const { return signal_text(o.number); }
  std::string operator()(const CpuLimit&) const { return "CPU time limit reached"; }
  std::string operator()(const WallLimit&) const { return "wall time limit reached"; }
  std::string operator()(const MemoryLimit&) const { return "memory limit reached"; }
  std::string operator()(const OutputLimit&) const { return "output limit reached"; }
  std::string operator()(const ProcessLimit&) const { return "process limit reached"; }
  std::string operator()(const FileLimit&) const { return "file size or file count limit reached"; }
  std::string operator()(const SyscallDenied& o) const { return "system call " + o.name + " denied"; }
  std::string operator()(const CompileError& o) const { return "does not compile: " + o.reason; }
  std::string operator()(const SetupError& o) const { return "not started: " + o.step + ": " + o.detail; }
  std::string operator()(const InternalError& o) const { return "sandbox failure: " + o.detail; }
  std::string operator()(const Cancelled&) const { return "cancelled"; }
};

}  // namespace

std::string_view name(const Outcome& outcome) { return kNames[outcome.index()]; }

std::string describe(const Outcome& outcome) { return std::visit(Describe{}, outcome); }

bool Protections::has(Protection protection) const {
  return std::find(active.begin(), active.end(), protection) != active.end();
}

}  // namespace fixpoint::sandbox
