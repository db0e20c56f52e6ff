#include "engine/detail/added_tokens.h"

#include <algorithm>
#include <utility>

namespace fixpoint::engine::detail {

void AddedTokens::add(std::string spelling, TokenId token) {
  if (!spelling.empty()) {
    entries_.push_back({std::move(spelling), token});
  }
}

void AddedTokens::finish() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.spelling < b.spelling; });
  first_byte_ranges_.assign(257, 0);
  for (const Entry& entry : entries_) {
    ++first_byte_ranges_[static_cast<std::uint8_t>(entry.spelling[0]) + 1U];
  }
  for (std::size_t byte = 0; byte < 256; ++byte) {
    first_byte_ranges_[byte + 1] += first_byte_ranges_[byte];
  }
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, std::size_t from) const {
  if (entries_.empty()) {
    return std::nullopt;
  }
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    const auto byte = static_cast<std::uint8_t>(text[begin]);
    if (first_byte_ranges_[byte] != first_byte_ranges_[byte + 1U]) {
      if (const auto match = longest_at(text, begin)) {
        return match;
      }
    }
  }
  return std::nullopt;
}

std::optional<AddedTokens::Match> AddedTokens::longest_at(std::string_view text, std::size_t begin) const {
  // The entries that agree with the text so far are neighbours; each further byte narrows them.
  const auto byte = static_cast<std::uint8_t>(text[begin]);
  auto low = entries_.begin() + first_byte_ranges_[byte];
  auto high = entries_.begin() + first_byte_ranges_[byte + 1U];
  std::optional<Match> longest;
  for (std::size_t length = 1; low != high; ++length) {
    if (low->spelling.size() == length) {
      longest = Match{begin, begin + length, low->token};
      ++low;
    }
    if (begin + length >= text.size()) {
      break;
    }
    const auto next = static_cast<std::uint8_t>(text[begin + length]);
    const auto at = [length](const Entry& entry) { return static_cast<std::uint8_t>(entry.spelling[length]); };
    low = std::partition_point(low, high, [&](const Entry& entry) { return at(entry) < next; });
    high = std::partition_point(low, high, [&](const Entry& entry) { return at(entry) == next; });
  }
  return longest;
}

}  // namespace fixpoint::engine::detail
