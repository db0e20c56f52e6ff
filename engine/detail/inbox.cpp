#include "engine/detail/inbox.h"

#include <utility>

namespace fixpoint::engine::detail {

bool Inbox::post(Message message) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    messages_.push_back(std::move(message));
  }
  arrived_.notify_one();
  return true;
}

std::vector<Message> Inbox::take(const std::stop_token& stop, bool wait, std::optional<Clock::time_point> until) {
  std::unique_lock lock(mutex_);
  const auto any = [this] { return !messages_.empty(); };
  if (wait && until) arrived_.wait_until(lock, stop, *until, any);
  if (wait && !until) arrived_.wait(lock, stop, any);
  return std::exchange(messages_, {});
}

std::vector<Message> Inbox::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  return std::exchange(messages_, {});
}

}  // namespace fixpoint::engine::detail
