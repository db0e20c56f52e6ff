#include "engine/drafter.h"

#include <gtest/gtest.h>

#include <random>

namespace fixpoint::engine {
namespace {

constexpr TokenId kLineEnd = 10;

std::vector<bool> line_ends() {
  std::vector<bool> ends(100);
  ends[kLineEnd] = true;
  return ends;
}
const std::vector<bool> kLineEnds = line_ends();

using Tokens = std::vector<TokenId>;

Draft draft(const Tokens& prompt, const Tokens& output, const Tokens& prediction = {}, int max_tokens = 8) {
  Request request;
  request.prompt = prompt;
  request.prediction = prediction;
  const auto drafter = make_drafter(request, kLineEnds);
  Tokens text = prompt;
  text.insert(text.end(), output.begin(), output.end());
  EXPECT_EQ(drafter->read(text, 1'000), static_cast<int>(text.size()));
  return drafter->propose(text, max_tokens);
}

TEST(DrafterTest, ThePreviousAttemptComesFirst) {
  const Draft first = draft({1, 2, 3, 4, 5, 1, 2, 3, 4}, {}, {7, 8, 9});
  EXPECT_EQ(first.source, DraftSource::previous_attempt);
  EXPECT_EQ(first.tokens, (Tokens{7, 8, 9}));
  EXPECT_EQ(draft({1, 2}, {7}, {7, 8, 9}).tokens, (Tokens{8, 9}));
}

TEST(DrafterTest, WhereThePreviousAttemptIsLostTheSessionsTextIsAsked) {
  const Draft lost = draft({1, 2, 3, 4, 5, 6}, {1, 2, 3, 4}, {70, 80, 90});
  EXPECT_EQ(lost.source, DraftSource::session_text);
  EXPECT_EQ(lost.matched, 4);
  EXPECT_EQ(lost.tokens, (Tokens{5, 6, 1, 2, 3, 4, 5, 6}));
}

TEST(DrafterTest, TheNewestVersionComesFirst) {
  EXPECT_EQ(draft({1, 2, 3, 4, 50, 10, 1, 2, 3, 4, 60, 10}, {1, 2, 3, 4}, {}, 1).tokens, (Tokens{60}));
  EXPECT_EQ(draft({1, 2, 3, 4, 50, 10}, {1, 2, 3, 4, 70, 10, 1, 2, 3, 4}, {}, 1).tokens, (Tokens{70})) << "the output's own";
}

TEST(DrafterTest, TheLongestRepeatBeatsTheNewest) {
  EXPECT_EQ(draft({9, 1, 2, 3, 4, 50, 10, 8, 1, 2, 3, 4, 60, 10}, {9, 1, 2, 3, 4}, {}, 1).tokens, (Tokens{50}));
}

TEST(DrafterTest, ShortRepeatsAreLookedUpInThePromptAlone) {
  const Draft by_three = draft({1, 2, 3, 40, 5}, {9, 1, 2, 3}, {}, 2);
  EXPECT_EQ(by_three.source, DraftSource::prompt);
  EXPECT_EQ(by_three.matched, 3);
  EXPECT_EQ(by_three.tokens, (Tokens{40, 5}));
  EXPECT_EQ(draft({2, 3, 40, 5}, {9, 2, 3}).matched, 2);
  EXPECT_TRUE(draft({20, 21}, {2, 3, 40, 5, 9, 2, 3}).tokens.empty()) << "in the output only";
}

TEST(DrafterTest, NothingIsDraftedWhereNothingIsKnown) {
  EXPECT_TRUE(draft({1, 2, 3, 4, 5}, {6, 7, 8}).tokens.empty());
  EXPECT_TRUE(draft({1}, {}).tokens.empty());
}

TEST(DrafterTest, NeverMoreThanWasAskedFor) {
  for (int most = 0; most < 5; ++most) {
    EXPECT_EQ(draft({1, 2}, {}, {7, 8, 9, 7, 8, 9, 7}, most).tokens.size(), static_cast<std::size_t>(most));
    EXPECT_LE(draft({1, 2, 3, 4, 5, 6, 1, 2, 3, 4}, {}, {}, most).tokens.size(), static_cast<std::size_t>(most));
  }
}

TEST(DrafterTest, ReadingAheadOrInAnyPiecesChangesNothing) {
  std::mt19937 random(4);
  for (int round = 0; round < 100; ++round) {
    Request request;
    Tokens text;
    for (int i = 0; i < 60; ++i) text.push_back(static_cast<TokenId>(random() % 4));
    request.prompt.assign(text.begin(), text.begin() + 30);
    if (round % 2 == 0) request.prediction.assign(text.begin() + 10, text.begin() + 50);
    const auto each = make_drafter(request, kLineEnds), last = make_drafter(request, kLineEnds);
    int read = 0;
    for (std::size_t n = 30; n <= text.size(); ++n) {
      if (random() % 3 == 0) read += each->read(std::span(text).first(n), static_cast<int>(random() % 20));
      static_cast<void>(each->propose(std::span(text).first(n), 6));
    }
    EXPECT_EQ(read + each->read(text, 1'000), 60);
    const Draft by_each = each->propose(text, 6);
    EXPECT_EQ(last->read(text, 1'000), 60);
    const Draft at_once = last->propose(text, 6);
    EXPECT_EQ(by_each.tokens, at_once.tokens);
    EXPECT_EQ(by_each.source, at_once.source);
    EXPECT_EQ(by_each.matched, at_once.matched);
  }
}

TEST(DrafterTest, DraftsFromTheTextWaitUntilAllOfItIsRead) {
  Request request;
  for (TokenId i = 0; i < 5'000; ++i) request.prompt.push_back(i % 1'000);
  const auto drafter = make_drafter(request, kLineEnds);
  for (const int piece : {1'000, 1'000, 1'000, 1'000, 999}) {
    EXPECT_EQ(drafter->read(request.prompt, piece), piece);
    EXPECT_TRUE(drafter->propose(request.prompt, 4).tokens.empty());
  }
  EXPECT_EQ(drafter->read(request.prompt, 1'000), 1);
  EXPECT_EQ(drafter->read(request.prompt, 1'000), 0);
  EXPECT_EQ(drafter->propose(request.prompt, 4).tokens, (Tokens{0, 1, 2, 3}));
}

}  // namespace
}  // namespace fixpoint::engine
