#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/generator.h"

namespace fixpoint::agent::detail {

/// What generating threads have for the loop's thread: text, merged for each attempt, and in the end a result. Holds at
/// most one generation's text (GenerateRequest::max_bytes) an attempt.
class Mailbox {
 public:
  struct Letter {
    int attempt = 0;
    std::string text;
    std::optional<tl::expected<Generation, GenerateError>> result;
    std::chrono::milliseconds elapsed{0};
  };

  void add_text(int attempt, std::string_view text);
  void add_result(int attempt, tl::expected<Generation, GenerateError> result, std::chrono::milliseconds elapsed);

  /// Waits for a result, or for text that is `merge` old; takes everything.
  [[nodiscard]] std::vector<Letter> take(std::chrono::milliseconds merge);

 private:
  Letter& letter(int attempt);

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Letter> letters_;
  bool has_result_ = false;
};

}  // namespace fixpoint::agent::detail
