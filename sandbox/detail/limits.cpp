#include "sandbox/detail/limits.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

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

bool set(int resource, std::uint64_t soft, std::uint64_t hard) {
  const KernelLimit limit{soft, hard};
  return ::syscall(SYS_prlimit64, 0, resource, &limit, nullptr) == 0;
}

bool set(int resource, std::uint64_t value) { return set(resource, value, value); }

}  // namespace

Failure set_resource_limits(const ResourceLimits& limits) {
  // A process alone hits its own limit a second late: the monitor, which sees all processes together, comes first.
  const std::uint64_t cpu_seconds = limits.cpu_milliseconds / 1000 + 1;
  const bool good = !fault_at(Step::resource_limits) && set(RLIMIT_CORE, kNoCore) && set(RLIMIT_CPU, cpu_seconds, cpu_seconds + 1) &&
                    set(RLIMIT_FSIZE, limits.file_bytes) && set(RLIMIT_STACK, kStackBytes) &&
                    set(RLIMIT_NOFILE, kOpenFiles) && set(RLIMIT_MEMLOCK, 0) && set(RLIMIT_MSGQUEUE, 0) &&
                    set(RLIMIT_SIGPENDING, kPendingSignals) && set(RLIMIT_NICE, 0) && set(RLIMIT_RTPRIO, 0) &&
                    set(RLIMIT_AS, limits.address_space_bytes == 0 ? kUnlimited : limits.address_space_bytes) &&
                    set(RLIMIT_NPROC, limits.processes == 0 ? kUnlimited : limits.processes);
  return good ? Failure{} : Failure{Step::resource_limits, errno};
}

}  // namespace fixpoint::sandbox::detail
