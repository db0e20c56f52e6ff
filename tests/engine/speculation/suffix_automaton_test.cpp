#include "engine/detail/suffix_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace fixpoint::engine::detail {
namespace {

struct Repeat {
  int length = 0;
  int end = 0;  // of its newest occurrence before the text's end
  bool operator==(const Repeat&) const = default;
};

/// The longest end of the text that ends earlier, too, and where it does so last.
Repeat longest_repeat(const std::vector<TokenId>& text) {
  Repeat best;
  const int n = static_cast<int>(text.size());
  for (int end = n - 1; end > 0; --end) {
    int length = 0;
    while (length < end && text[static_cast<std::size_t>(end - 1 - length)] == text[static_cast<std::size_t>(n - 1 - length)]) ++length;
    if (length > best.length) best = {length, end};
  }
  return best;
}

bool occurs(const std::vector<TokenId>& text, const Repeat& repeat) {
  const auto end = text.begin() + repeat.end;
  return std::equal(end - repeat.length, end, text.end() - repeat.length);
}

class SuffixAutomatonTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(SuffixAutomatonTest, MatchIsTheLongestRepeatAndItsNewestPlace) {
  std::mt19937 random(GetParam());
  const unsigned alphabet = 2 + random() % 12;
  SuffixAutomaton automaton;
  std::vector<TokenId> text;
  while (text.size() < 400) {
    // Pieces of what was there before, among fresh tokens: text that repeats itself with changes.
    if (text.size() > 20 && random() % 8 == 0) {
      const std::size_t from = random() % (text.size() - 10);
      for (std::size_t i = 0, n = 1 + random() % 10; i < n; ++i) text.push_back(text[from + i]);
    } else {
      text.push_back(static_cast<TokenId>(random() % alphabet) * 1000);
    }
    while (automaton.text().size() < text.size()) {
      automaton.push(text[automaton.text().size()]);
      const std::vector<TokenId> so_far(automaton.text().begin(), automaton.text().end());
      const Repeat expected = longest_repeat(so_far);
      ASSERT_EQ(automaton.match_length(), expected.length) << "after " << so_far.size();
      if (expected.length > 0) { ASSERT_EQ(automaton.match_end(), expected.end) << "after " << so_far.size(); }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Texts, SuffixAutomatonTest, ::testing::Range(0U, 60U));

TEST(SuffixAutomatonPeriodicTest, ShortPeriodsHaveTheLongestRepeatAtSomePlace) {
  std::mt19937 random(5);
  for (int round = 0; round < 30; ++round) {
    SuffixAutomaton automaton;
    std::vector<TokenId> text;
    for (int run = 0; run < 6; ++run) {
      const unsigned period = 1 + random() % 3;
      for (unsigned i = 0, n = 60 + random() % 90; i < n; ++i) {
        text.push_back(static_cast<TokenId>(i % period));
        automaton.push(text.back());
        const Repeat match{automaton.match_length(), automaton.match_end()};
        ASSERT_EQ(match.length, longest_repeat(text).length);
        if (match.length == 0) continue;
        ASSERT_LT(match.end, static_cast<int>(text.size()));
        ASSERT_TRUE(occurs(text, match));
      }
    }
  }
}

TEST(SuffixAutomatonContinuationTest, GoesOnLikeTheEarlierPlaceAndRepeatsItself) {
  SuffixAutomaton automaton;
  EXPECT_TRUE(automaton.continuation(3).empty());
  for (const TokenId token : {1, 2, 3, 4, 9, 1, 2}) automaton.push(token);
  EXPECT_EQ(automaton.match_length(), 2);
  EXPECT_EQ(automaton.continuation(3), (std::vector<TokenId>{3, 4, 9}));
  EXPECT_EQ(automaton.continuation(7), (std::vector<TokenId>{3, 4, 9, 1, 2, 3, 4}));
}

TEST(SuffixAutomatonCostTest, LongAndDegenerateTextsAreReadInLinearTime) {
  // Quadratic work would take minutes here.
  SuffixAutomaton same, counting;
  for (int i = 0; i < 200'000; ++i) {
    same.push(7);
    counting.push(i);
  }
  EXPECT_EQ(same.match_length(), 199'999);
  EXPECT_EQ(counting.match_length(), 0);
}

}  // namespace
}  // namespace fixpoint::engine::detail
