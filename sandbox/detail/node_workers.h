#pragma once

#include <list>
#include <mutex>
#include <optional>

#include "sandbox/detail/broker_process.h"
#include "sandbox/detail/monitor.h"
#include "sandbox/job.h"

namespace fixpoint::sandbox::detail {

/// Node processes that were started ahead, each inside a sandbox of its own, waiting for a program on descriptor 3. Each is
/// used once, and only for a job whose limits are those it was started with. Thread-safe.
class NodeWorkers {
 public:
  /// At most this many wait.
  static constexpr std::size_t kReady = 2;

  /// A worker that has been given `job`, or nothing: then start a cold one.
  [[nodiscard]] std::optional<RunEnds> take(const Job& job);
  /// Starts workers for jobs with these limits until enough wait; those with other limits leave.
  void refill(BrokerProcess& broker, const LaunchFrame& frame, const Limits& limits);

 private:
  struct Worker {
    RunEnds ends;
    UniqueFd questions;
    Limits limits;
  };

  std::mutex mutex_;
  std::list<Worker> idle_;
};

}  // namespace fixpoint::sandbox::detail
