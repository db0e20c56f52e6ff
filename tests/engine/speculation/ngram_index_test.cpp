#include "engine/detail/ngram_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace fixpoint::engine::detail {
namespace {

std::optional<std::size_t> newest(std::span<const TokenId> text, std::span<const TokenId> run) {
  for (std::size_t end = text.size() - 1; end >= run.size(); --end) {
    if (std::equal(run.begin(), run.end(), text.begin() + static_cast<std::ptrdiff_t>(end - run.size()))) return end;
  }
  return std::nullopt;
}

TEST(NgramIndexTest, FindsTheNewestRunThatSomethingFollowed) {
  std::mt19937 random(3);
  for (int n = 1; n <= 4; ++n) {
    for (int round = 0; round < 20; ++round) {
      NgramIndex index(n);
      std::vector<TokenId> text(1 + random() % 200);
      for (TokenId& token : text) token = static_cast<TokenId>(random() % 5);
      for (std::size_t i = 1; i <= text.size(); ++i) index.push(std::span(text).first(i));
      for (int i = 0; i < 50; ++i) {
        std::vector<TokenId> tail(static_cast<std::size_t>(n) + random() % 3);
        for (TokenId& token : tail) token = static_cast<TokenId>(random() % 5);
        ASSERT_EQ(index.find(text, tail), newest(text, std::span(tail).last(static_cast<std::size_t>(n))));
      }
    }
  }
}

TEST(NgramIndexTest, KnowsNothingBeforeItHasReadAnything) {
  const std::vector<TokenId> text{1, 2, 3};
  EXPECT_FALSE(NgramIndex(2).find(text, text));
  NgramIndex index(2);
  index.push(std::span(text).first(2));
  EXPECT_FALSE(index.find(text, std::span(text).first(1))) << "the tail is shorter than a run";
}

}  // namespace
}  // namespace fixpoint::engine::detail
