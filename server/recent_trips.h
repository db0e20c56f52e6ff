#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace fixpoint::server {

/// Whether the engine's watchdog has tripped lately. After a trip the engine fails the request that it can't run and goes
/// on, so a trip is shown for a while and not for ever. Thread-safe.
class RecentTrips {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kShown{30};  ///< from when a trip is first seen

  /// `trips`: how many there have been since the engine started.
  [[nodiscard]] bool seen(std::uint64_t trips, Clock::time_point now) {
    const std::scoped_lock lock(mutex_);
    if (trips > trips_) {
      trips_ = trips;
      until_ = now + kShown;
    }
    return now < until_;
  }

 private:
  std::mutex mutex_;
  std::uint64_t trips_ = 0;
  Clock::time_point until_ = Clock::time_point::min();
};

}  // namespace fixpoint::server
