#pragma once

#include <list>
#include <mutex>
#include <optional>

#include "sandbox/detail/broker_process.h"
#include "sandbox/detail/monitor.h"
#include "sandbox/job.h"

namespace fixpoint::sandbox::detail {

/// Interpreters that were started ahead, each inside a sandbox of its own and confined, waiting for a program on
/// descriptor 3. Each is used once, and only for a job whose limits are those it was started with. Thread-safe.
class WarmWorkers {
 public:
  /// At most this many wait for each language.
  static constexpr std::size_t kReady = 2;

  /// A worker that has been given the job, or nothing: then launch `frame`, which is the job's.
  [[nodiscard]] std::optional<RunEnds> take(const Job& job, const LaunchFrame& frame);
  /// Starts workers for jobs of this language with these limits until enough wait; those with other limits leave.
  /// `frame` is a waiting worker's.
  void refill(BrokerProcess& broker, const LaunchFrame& frame, Language language, const Limits& limits);

 private:
  struct Worker {
    Language language = Language::python;
    RunEnds ends;
    UniqueFd channel;
    UniqueFd ready;  ///< readable once it waits
    Limits limits;
  };

  std::mutex mutex_;
  std::list<Worker> idle_;
};

}  // namespace fixpoint::sandbox::detail
