#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/detail/merger.h"
#include "engine/detail/token_index.h"

namespace fixpoint::engine::detail {

/// Most words of a text are tokens as they stand. Whether the merges really end in that token is the same every time, so
/// it is found out once a token and remembered. Any number of threads may ask.
class WholeWords {
 public:
  explicit WholeWords(std::size_t tokens) : answers_(std::make_unique<std::atomic<std::uint8_t>[]>(tokens)) {}

  /// `merges_to_itself()` is called where the answer is not known yet.
  template <typename Ask>
  [[nodiscard]] bool is_whole(TokenId token, const Ask& merges_to_itself) const {
    std::atomic<std::uint8_t>& answer = answers_[static_cast<std::size_t>(token)];
    const std::uint8_t known = answer.load(std::memory_order_relaxed);
    if (known != kUnknown) {
      return known == kYes;
    }
    const bool whole = merges_to_itself();
    answer.store(whole ? kYes : kNo, std::memory_order_relaxed);
    return whole;
  }

 private:
  enum Answer : std::uint8_t { kUnknown, kYes, kNo };
  std::unique_ptr<std::atomic<std::uint8_t>[]> answers_;
};

}  // namespace fixpoint::engine::detail
