#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "sandbox/detail/frame.h"
#include "sandbox/detail/unique_fd.h"
#include "sandbox/sandbox.h"

namespace fixpoint::sandbox::detail {

/// The embedded broker as a sealed memory file that can be executed.
[[nodiscard]] const UniqueFd& broker_executable();

/// Starts the broker, tells it what the frames in `introduction` say, and starts another one when it died.
/// Thread-safe.
class BrokerProcess {
 public:
  BrokerProcess(HelloFrame hello, std::vector<Frame> introduction);
  BrokerProcess(const BrokerProcess&) = delete;
  BrokerProcess& operator=(const BrokerProcess&) = delete;
  ~BrokerProcess();

  /// Starts it when it is not running.
  [[nodiscard]] tl::expected<void, StartError> ensure();
  /// Sends one frame, once more to a new broker when the old one is gone.
  [[nodiscard]] tl::expected<void, StartError> send(const Frame& frame, std::span<const int> descriptors);
  [[nodiscard]] pid_t pid() const;
  [[nodiscard]] const ProbesFrame& probes() const { return probes_; }

 private:
  [[nodiscard]] tl::expected<void, StartError> start();
  void stop();

  const HelloFrame hello_;
  const std::vector<Frame> introduction_;
  mutable std::mutex mutex_;
  pid_t pid_ = 0;
  std::uint64_t generation_ = 0;  ///< counts brokers
  UniqueFd socket_;
  ProbesFrame probes_;
};

}  // namespace fixpoint::sandbox::detail
