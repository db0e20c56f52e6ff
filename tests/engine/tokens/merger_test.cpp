#include "engine/detail/merger.h"

#include <gtest/gtest.h>

#include <random>

namespace fixpoint::engine::detail {
namespace {

/// By the definition: the lowest rank, the leftmost of equals, until nothing merges.
std::vector<TokenId> merge_slowly(const MergeTable& table, std::vector<TokenId> symbols) {
  for (;;) {
    std::size_t best = symbols.size();
    MergeTable::Merge merge;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = table.find(symbols[i], symbols[i + 1]);
      if (found.rank < merge.rank) {
        merge = found;
        best = i;
      }
    }
    if (best == symbols.size()) return symbols;
    symbols[best] = merge.result;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(MergerTest, RandomTablesAndWordsMergeByTheDefinition) {
  std::mt19937 random(6);
  for (int round = 0; round < 300; ++round) {
    const int kinds = 2 + static_cast<int>(random() % 6);
    MergeTable table(40);
    for (int i = 0; i < 40; ++i) {
      // Equal ranks for different pairs too, as SentencePiece has.
      const auto symbol = [&](int below) { return static_cast<TokenId>(random() % static_cast<unsigned>(below)); };
      table.insert(symbol(kinds + i), symbol(kinds + i), {static_cast<std::uint32_t>(random() % 30), symbol(kinds + i + 1)});
    }
    for (const std::size_t length : {0U, 1U, 2U, 5U, 31U, 32U, 33U, 34U, 100U, 400U}) {
      std::vector<TokenId> symbols(length);
      for (TokenId& symbol : symbols) symbol = static_cast<TokenId>(random() % static_cast<unsigned>(kinds));
      const auto want = merge_slowly(table, symbols);
      merge_symbols(table, symbols);
      ASSERT_EQ(symbols, want);
    }
  }
}

TEST(MergerTest, TheFirstInsertionOfAPairCounts) {
  MergeTable table(2);
  table.insert(1, 2, {0, 7});
  table.insert(1, 2, {1, 8});
  EXPECT_EQ(table.find(1, 2).result, 7);
  EXPECT_EQ(table.find(2, 1).rank, MergeTable::kNone);
}

}  // namespace
}  // namespace fixpoint::engine::detail
