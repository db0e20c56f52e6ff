#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sandbox/detail/unique_fd.h"

namespace fixpoint::sandbox::detail {

struct CgroupCounters {
  std::uint64_t cpu_microseconds = 0;  ///< since the leaf was made
  std::uint64_t peak_memory_bytes = 0;
  std::uint64_t oom_kills = 0;
  std::uint64_t fork_failures = 0;
};

/// A leaf's counters as open files, which whoever holds the descriptors can read: the broker, and the run's init. One that the host
/// does not have is not valid and reads as 0.
struct CounterFiles {
  UniqueFd cpu;
  UniqueFd peak;
  UniqueFd oom;
  UniqueFd forks;                ///< poll says POLLPRI where it has changed since it was read
  std::uint64_t kept_bytes = 0;  ///< memory that was there before the run: taken off the peak

  [[nodiscard]] CgroupCounters read() const;
};

/// The present content of an open counter.
[[nodiscard]] std::string reread(const UniqueFd& file);

/// CPU time in microseconds from the text of cpu.stat (v2) or cpuacct.usage (v1).
[[nodiscard]] std::uint64_t parse_cpu_counter(std::string_view text);

/// The number that `text` begins with; 0 where it begins with none.
[[nodiscard]] std::uint64_t parse_number(std::string_view text);

/// The number after `key` at the start of a line of "key value" pairs.
[[nodiscard]] std::uint64_t parse_field(std::string_view text, std::string_view key);

}  // namespace fixpoint::sandbox::detail
