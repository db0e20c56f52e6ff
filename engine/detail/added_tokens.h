#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// Tokens that are looked for in the text before it is tokenised: control tokens and user-defined ones.
class AddedTokens {
 public:
  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    TokenId token = -1;
  };

  void add(std::string spelling, TokenId token);
  /// Call once, after the last add.
  void finish();
  /// The leftmost token at or after `from`, the longest where several begin there.
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  struct Entry {
    std::string spelling;
    TokenId token;
  };
  [[nodiscard]] std::optional<Match> longest_at(std::string_view text, std::size_t begin) const;

  std::vector<Entry> entries_;                    ///< sorted by spelling
  std::vector<std::uint32_t> first_byte_ranges_;  ///< [257]: entries that begin with byte b are [b], …, [b + 1] - 1
};

}  // namespace fixpoint::engine::detail
