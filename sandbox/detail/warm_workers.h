#pragma once

#include <list>
#include <mutex>
#include <optional>

#include "sandbox/detail/broker_process.h"
#include "sandbox/detail/monitor.h"
#include "sandbox/job.h"

namespace fixpoint::sandbox::detail {

/// Interpreters that were started ahead, each inside a sandbox of its own and confined, waiting for a program on
/// descriptor 3. Each is used once, and only for a job whose limits it can keep: what the run's monitor enforces from outside (wall
/// time, and CPU time where it is counted) may be less than what a worker was started with. Thread-safe.
class WarmWorkers {
 public:
  explicit WarmWorkers(bool cpu_is_counted) : cpu_is_counted_(cpu_is_counted) {}

  /// At most this many wait for each language.
  static constexpr std::size_t kReady = 2;

  /// A worker that has been given the job, or nothing: then launch `frame`, which is the job's.
  [[nodiscard]] std::optional<RunEnds> take(const Job& job, const LaunchFrame& frame);
  /// What a worker for jobs with these limits is started with.
  [[nodiscard]] Limits limits_for(Limits limits) const;
  /// Starts workers of this language until enough wait that can keep `limits`; those that can't leave. `frame` is that of a
  /// waiting worker with limits_for(limits).
  void refill(BrokerProcess& broker, const LaunchFrame& frame, Language language, const Limits& limits);

 private:
  struct Worker {
    Language language = Language::python;
    RunEnds ends;
    UniqueFd channel;
    UniqueFd ready;  ///< readable once it waits
    Limits limits;
  };

  [[nodiscard]] bool keeps(const Worker& worker, Limits limits) const;

  const bool cpu_is_counted_;
  std::mutex mutex_;
  std::list<Worker> idle_;
};

}  // namespace fixpoint::sandbox::detail
