#include "engine/detail/token_index.h"

#include <bit>
#include <functional>

namespace fixpoint::engine::detail {

TokenIndex::TokenIndex(const std::vector<std::string>& spellings)
    : spellings_(&spellings), slots_(std::bit_ceil(2 * spellings.size() + 2)) {}

bool TokenIndex::insert(TokenId token) {
  const std::string& spelling = (*spellings_)[static_cast<std::size_t>(token)];
  const std::size_t full_hash = hash(spelling);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = full_hash & mask;
  for (; slots_[at].token >= 0; at = (at + 1) & mask) {
    if ((*spellings_)[static_cast<std::size_t>(slots_[at].token)] == spelling) {
      return false;
    }
  }
  slots_[at] = {static_cast<std::uint32_t>(full_hash >> 32U), token};
  return true;
}

std::optional<TokenId> TokenIndex::find(std::string_view spelling) const {
  const std::size_t full_hash = hash(spelling);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = full_hash & mask; slots_[at].token >= 0; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.hash == static_cast<std::uint32_t>(full_hash >> 32U) &&
        (*spellings_)[static_cast<std::size_t>(slot.token)] == spelling) {
      return slot.token;
    }
  }
  return std::nullopt;
}

}  // namespace fixpoint::engine::detail
