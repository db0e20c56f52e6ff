#include "sandbox/detail/limits.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace fixpoint::sandbox::detail {

namespace {

constexpr std::uint64_t kUnlimited = ~0ULL;
// 0 still feeds a core_pattern that pipes into a program; 1 writes neither a file nor a pipe.
constexpr std::uint64_t kNoCore = 1;
constexpr std::uint64_t kStackBytes = 64ULL << 20;
constexpr std::uint64_t kOpenFiles = 256;
constexpr std::uint64_t kPendingSignals = 256;

struct KernelLimit {
  std::uint64_t soft;
  std::uint64_t hard;
};

}  // namespace

Failure set_resource_limits(const ResourceLimits& limits) {
  if (fault_at(Step::resource_limits)) return {Step::resource_limits, errno};
  // A process alone hits its own limit a second late: the monitor, which sees all processes together, comes first.
  const std::uint64_t cpu_seconds = limits.cpu_milliseconds / 1000 + 1;
  const auto same = [](std::uint64_t value) { return KernelLimit{value, value}; };
  const std::pair<int, KernelLimit> all[] = {
      {RLIMIT_CORE, same(kNoCore)},
      {RLIMIT_CPU, {cpu_seconds, cpu_seconds + 1}},
      {RLIMIT_FSIZE, same(limits.file_bytes)},
      {RLIMIT_STACK, same(kStackBytes)},
      {RLIMIT_NOFILE, same(kOpenFiles)},
      {RLIMIT_MEMLOCK, same(0)},
      {RLIMIT_MSGQUEUE, same(0)},
      {RLIMIT_SIGPENDING, same(kPendingSignals)},
      {RLIMIT_NICE, same(0)},
      {RLIMIT_RTPRIO, same(0)},
      {RLIMIT_AS, same(limits.address_space_bytes == 0 ? kUnlimited : limits.address_space_bytes)},
      {RLIMIT_NPROC, same(limits.processes == 0 ? kUnlimited : limits.processes)}};
  for (const auto& [resource, limit] : all) {
    if (::syscall(SYS_prlimit64, 0, resource, &limit, nullptr) != 0) return {Step::resource_limits, errno};
  }
  return {};
}

}  // namespace fixpoint::sandbox::detail
