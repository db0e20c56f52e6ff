#pragma once

#include <cstdint>
#include <vector>

#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// Which two adjacent symbols become which one, and how soon. A symbol is a token id, or an id past the vocabulary for a
/// character that is no token but a part of some.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = kNone;  ///< lower first
    TokenId result = -1;
  };
  static constexpr std::uint32_t kNone = UINT32_MAX;

  /// Room for `merges` insertions.
  explicit MergeTable(std::size_t merges = 0);
  /// The first insertion of a pair counts.
  void insert(TokenId left, TokenId right, Merge merge);
  /// rank == kNone where the pair does not merge.
  [[nodiscard]] Merge find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    std::uint64_t key = UINT64_MAX;
    Merge merge;
  };
  [[nodiscard]] std::size_t slot_of(std::uint64_t key) const;

  std::vector<Slot> slots_;
};

/// Merges `symbols` in place until no adjacent pair merges: always the lowest rank, of equal ranks the leftmost.
/// Cost: O(n log n); short words, the common case, go without a heap.
void merge_symbols(const MergeTable& table, std::vector<TokenId>& symbols);

}  // namespace fixpoint::engine::detail
