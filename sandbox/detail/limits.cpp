#include "sandbox/detail/limits.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>

namespace fixpoint::sandbox::detail {

namespace {

constexpr std::uint64_t kUnlimited = ~0ULL;
// 0 still feeds a core_pattern that pipes into a program; 1 writes neither a file nor a pipe.
constexpr std::uint64_t kNoCore = 1;
constexpr std::uint64_t kStackBytes = 64ULL << 20;
constexpr std::uint64_t kOpenFiles = 256;
constexpr std::uint64_t kPendingSignals = 256;

struct KernelLimit {
  int resource;
  std::uint64_t soft;
  std::uint64_t hard;
};

Failure set(std::initializer_list<KernelLimit> limits) {
  for (const KernelLimit& limit : limits) {
    const std::uint64_t values[] = {limit.soft, limit.hard};
    if (::syscall(SYS_prlimit64, 0, limit.resource, values, nullptr) != 0) return {Step::resource_limits, errno};
  }
  return {};
}

KernelLimit same(int resource, std::uint64_t value) { return {resource, value, value}; }

}  // namespace

void make_room_for_limits() {
  for (const int resource : {RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_NPROC}) (void)set({same(resource, kUnlimited)});
}

Failure set_usual_limits() {
  return set({same(RLIMIT_CORE, kNoCore), same(RLIMIT_STACK, kStackBytes), same(RLIMIT_NOFILE, kOpenFiles), same(RLIMIT_MEMLOCK, 0),
              same(RLIMIT_MSGQUEUE, 0), same(RLIMIT_SIGPENDING, kPendingSignals), same(RLIMIT_NICE, 0), same(RLIMIT_RTPRIO, 0)});
}

Failure set_resource_limits(const ResourceLimits& limits) {
  if (fault_at(Step::resource_limits)) return {Step::resource_limits, errno};
  // A process alone hits its own limit a second late: the monitor, which sees all processes together, comes first.
  const std::uint64_t cpu_seconds = limits.cpu_milliseconds / 1000 + 1;
  return set({{RLIMIT_CPU, cpu_seconds, cpu_seconds + 1},
              same(RLIMIT_FSIZE, limits.file_bytes),
              same(RLIMIT_AS, limits.address_space_bytes == 0 ? kUnlimited : limits.address_space_bytes),
              same(RLIMIT_NPROC, limits.processes == 0 ? kUnlimited : limits.processes)});
}

}  // namespace fixpoint::sandbox::detail
