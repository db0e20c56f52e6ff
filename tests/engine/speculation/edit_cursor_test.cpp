#include "engine/detail/edit_cursor.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace fixpoint::engine::detail {
namespace {

/// Characters as tokens.
std::vector<TokenId> tokens(const std::string& text) { return {text.begin(), text.end()}; }

std::vector<bool> newline_only() {
  std::vector<bool> ends(256);
  ends['\n'] = true;
  return ends;
}
const std::vector<bool> kLineEnds = newline_only();

std::string text(std::span<const TokenId> tokens) { return {tokens.begin(), tokens.end()}; }

/// What the cursor expects after `output`.
std::string next(const std::string& previous, const std::string& output) {
  EditCursor cursor(tokens(previous), kLineEnds);
  const auto written = tokens(output);
  for (std::size_t i = 1; i <= written.size(); ++i) cursor.advance(std::span(written).first(i));
  return text(cursor.next());
}

const std::string kProgram = "def f(xs):\n    a = 1\n    b = 2\n    return a + b\n";

TEST(EditCursorTest, ExpectsThePreviousVersionFromItsBeginning) {
  EXPECT_EQ(next(kProgram, ""), kProgram);
  EXPECT_EQ(next(kProgram, "def f"), kProgram.substr(5));
  EXPECT_EQ(next(kProgram, kProgram), "");
}

TEST(EditCursorTest, GoesOnBehindAReplacedToken) {
  EXPECT_EQ(next(kProgram, "def f(xs):\n    a = 7"), "") << "the edit may go on";
  EXPECT_EQ(next(kProgram, "def f(xs):\n    a = 7\n"), "    b = 2\n    return a + b\n");
}

TEST(EditCursorTest, GoesOnBehindTokensThatWerePutIn) {
  EXPECT_EQ(next(kProgram, "def f(xs, ys):\n    a"), " = 1\n    b = 2\n    return a + b\n");
}

TEST(EditCursorTest, GoesOnBehindTokensThatWereLeftOut) {
  EXPECT_EQ(next(kProgram, "def f(xs):\n    b = "), "2\n    return a + b\n") << "a line was left out";
}

TEST(EditCursorTest, FindsALineAgainAfterText) {
  EXPECT_EQ(next(kProgram, "Line two is wrong: it should add.\n\ndef f(xs):\n"), "    a = 1\n    b = 2\n    return a + b\n");
}

TEST(EditCursorTest, FindsALineAgainAfterNewLines) {
  EXPECT_EQ(next(kProgram, "def f(xs):\n    if not xs:\n        raise ValueError('none of them')\n    a = 1\n"), "    b = 2\n    return a + b\n");
}

TEST(EditCursorTest, SupposesThatALineStandsForALine) {
  const std::string previous = "alpha beta\ngamma delta\nepsilon\n";
  EXPECT_EQ(next(previous, "alpha QQQQQQQ\n"), "gamma delta\nepsilon\n");
  EXPECT_EQ(next(previous, "alpha beta\nQQQQQQQ\n"), "epsilon\n");
}

TEST(EditCursorTest, KeepsTheSuppositionWhileItIsNotRefuted) {
  // Three lines for one: what came after the one is still what is expected after the third.
  EXPECT_EQ(next("alpha beta\ngamma delta\nepsilon\n", "alpha QQ\nWW\nZZ\n"), "gamma delta\nepsilon\n");
}

TEST(EditCursorTest, OfLinesThatAreAlikeTheNextIsMeant) {
  const std::string previous = "x += 1\na\nx += 1\nb\nx += 1\nc\n";
  EXPECT_EQ(next(previous, "x += 1\na\nQQQ\nx += 1\n"), "b\nx += 1\nc\n");
}

TEST(EditCursorTest, MatchedCountsSinceThePlaceWasFound) {
  EditCursor cursor(tokens("alpha\nbeta\n"), kLineEnds);
  const auto written = tokens("alpha\nQQQ\n");
  EXPECT_EQ(cursor.matched(), 0);
  for (std::size_t i = 1; i <= 6; ++i) {
    cursor.advance(std::span(written).first(i));
    EXPECT_EQ(cursor.matched(), static_cast<int>(i));
  }
  for (std::size_t i = 7; i <= written.size(); ++i) cursor.advance(std::span(written).first(i));
  EXPECT_EQ(cursor.matched(), 0) << "the place is only supposed";
}

TEST(EditCursorTest, AnythingMayBePreviousAndAnythingWritten) {
  std::mt19937 random(1);
  for (int round = 0; round < 2'000; ++round) {
    const auto some = [&](unsigned most) {
      std::vector<TokenId> made(random() % most);
      for (TokenId& token : made) token = random() % 5 == 0 ? '\n' : static_cast<TokenId>(random() % 4 == 0 ? random() % 100'000 : 'a' + random() % 3);
      return made;
    };
    const auto previous = some(60), written = some(80);
    EditCursor cursor(previous, kLineEnds);
    for (std::size_t i = 1; i <= written.size(); ++i) {
      cursor.advance(std::span(written).first(i));
      ASSERT_LE(cursor.next().size(), previous.size());
    }
  }
}

/// A repair: some lines changed, put in or left out. How much of it the cursor foresees.
TEST(EditCursorTest, ForeseesMostOfARepairedProgram) {
  std::mt19937 random(2);
  std::string previous, repaired;
  for (int i = 0; i < 200; ++i) {
    const std::string line = "    value_" + std::to_string(random() % 1000) + " = call_" + std::to_string(i) + "(" + std::to_string(random() % 100) + ")\n";
    previous += line;
    const auto what = random() % 60;
    if (what == 0) repaired += "    raise Something(" + std::to_string(i) + ")\n" + line;
    if (what == 1) continue;
    if (what == 2) repaired += "    other_" + std::to_string(i) + " = None\n";
    if (what != 0 && what != 2) repaired += line;
  }
  EditCursor cursor(tokens(previous), kLineEnds);
  const auto written = tokens(repaired);
  std::size_t foreseen = 0;
  for (std::size_t i = 0; i < written.size(); ++i) {
    foreseen += !cursor.next().empty() && cursor.next().front() == written[i] ? 1U : 0U;
    cursor.advance(std::span(written).first(i + 1));
  }
  EXPECT_GT(static_cast<double>(foreseen), 0.93 * static_cast<double>(written.size()));
}

}  // namespace
}  // namespace fixpoint::engine::detail
