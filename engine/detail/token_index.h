#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// Spelling -> token id, for spellings that a vector owned by someone else keeps. Open addressing: one cache line a look-up.
class TokenIndex {
 public:
  /// `spellings` must outlive the index and not change.
  explicit TokenIndex(const std::vector<std::string>& spellings);

  /// False where another token has the same spelling.
  bool insert(TokenId token);
  [[nodiscard]] std::optional<TokenId> find(std::string_view spelling) const;

 private:
  struct Slot {
    std::uint32_t hash = 0;
    TokenId token = -1;
  };
  [[nodiscard]] static std::size_t hash(std::string_view spelling) { return std::hash<std::string_view>{}(spelling); }

  const std::vector<std::string>* spellings_;
  std::vector<Slot> slots_;  ///< size a power of two, at most half full
};

}  // namespace fixpoint::engine::detail
