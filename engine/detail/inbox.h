#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "engine/detail/delivery.h"
#include "engine/request.h"

namespace fixpoint::engine::detail {

using Clock = std::chrono::steady_clock;

struct NewRequest {
  std::uint64_t id = 0;
  Request request;
  std::uint64_t seed = 0;
  std::int64_t max_total_tokens = 0;
  std::shared_ptr<Delivery> delivery;
  Clock::time_point submitted;
};
struct CancelRequest {
  std::uint64_t id = 0;
};
struct NewPin {
  std::uint64_t id = 0;
  std::string tenant;
  std::vector<TokenId> tokens;
  Clock::time_point expiry;
};
struct EndPin {
  std::uint64_t id = 0;
};
struct EndSession {
  std::string tenant, session;
};
using Message = std::variant<NewRequest, CancelRequest, NewPin, EndPin, EndSession>;

/// What other threads want from the engine's thread, in order. Requests are bounded by the engine's admission; of the other
/// messages there are at most two for each handle or pin that exists, and one when a session ends, so nothing is ever turned
/// away while it is open.
class Inbox {
 public:
  /// False when the engine has ended.
  bool post(Message message);
  /// Everything that was posted. With `wait`, blocks until there is something, `until` has come, or a stop is requested.
  [[nodiscard]] std::vector<Message> take(const std::stop_token& stop, bool wait, std::optional<Clock::time_point> until);
  /// Refuses further messages; gives what was still there.
  [[nodiscard]] std::vector<Message> close();

 private:
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::vector<Message> messages_;
  bool closed_ = false;
};

}  // namespace fixpoint::engine::detail
