#include "agent/detail/mailbox.h"

#include <utility>

namespace fixpoint::agent::detail {

Mailbox::Letter& Mailbox::letter(int attempt) {
  for (Letter& letter : letters_) {
    if (letter.attempt == attempt) return letter;
  }
  return letters_.emplace_back(Letter{.attempt = attempt});
}

void Mailbox::add_text(int attempt, std::string_view text) {
  if (text.empty()) return;
  const std::scoped_lock lock(mutex_);
  letter(attempt).text += text;
  arrived_.notify_one();
}

void Mailbox::add_result(int attempt, tl::expected<Generation, GenerateError> result, std::chrono::milliseconds elapsed) {
  const std::scoped_lock lock(mutex_);
  Letter& last = letter(attempt);
  last.result = std::move(result);
  last.elapsed = elapsed;
  has_result_ = true;
  arrived_.notify_one();
}

std::vector<Mailbox::Letter> Mailbox::take(std::chrono::milliseconds merge) {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [this] { return !letters_.empty(); });
  arrived_.wait_for(lock, merge, [this] { return has_result_; });
  has_result_ = false;
  return std::exchange(letters_, {});
}

}  // namespace fixpoint::agent::detail
