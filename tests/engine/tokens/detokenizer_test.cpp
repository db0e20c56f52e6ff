#include "engine/detokenizer.h"

#include <gtest/gtest.h>

#include "engine/utf8.h"
#include "tests/engine/tokens/small_vocabulary.h"

namespace fixpoint::engine {
namespace {

/// A vocabulary whose tokens are the given byte strings.
class Pieces {
 public:
  explicit Pieces(const std::vector<std::string>& pieces) : tokenizer_(testing::build(spec_of(pieces))) {
    for (const std::string& piece : pieces) tokens_.push_back(*tokenizer_.find(testing::spell_bytes(piece)));
  }
  [[nodiscard]] const Tokenizer& tokenizer() const { return tokenizer_; }
  [[nodiscard]] const std::vector<TokenId>& tokens() const { return tokens_; }

 private:
  static TokenizerSpec spec_of(const std::vector<std::string>& pieces) {
    TokenizerSpec spec;
    for (const std::string& piece : pieces) {
      const std::string spelling = testing::spell_bytes(piece);
      if (std::find(spec.tokens.begin(), spec.tokens.end(), spelling) == spec.tokens.end()) spec.tokens.push_back(spelling);
    }
    spec.types.assign(spec.tokens.size(), TokenType::normal);
    return spec;
  }

  Tokenizer tokenizer_;
  std::vector<TokenId> tokens_;
};

struct Result {
  std::vector<std::string> given;
  std::string joined;
  std::string stop;
};

/// Feeds all tokens, and checks on the way what holds of every piece.
Result run(const Pieces& pieces, const std::vector<std::string>& stops) {
  Detokenizer detokenizer(pieces.tokenizer(), stops);
  Result result;
  for (const TokenId token : pieces.tokens()) {
    const auto piece = detokenizer.push(token);
    EXPECT_EQ(as_valid_utf8(piece.text), piece.text);
    EXPECT_EQ(piece.stopped, !detokenizer.matched_stop().empty());
    result.given.push_back(piece.text);
    result.joined += piece.text;
  }
  result.joined += detokenizer.finish();
  EXPECT_EQ(as_valid_utf8(result.joined), result.joined);
  result.stop = detokenizer.matched_stop();
  return result;
}

/// What a whole text gives: everything before the stop string that is complete first, the longest of those.
std::pair<std::string, std::string> expected(const std::string& bytes, const std::vector<std::string>& stops) {
  const std::string text = as_valid_utf8(bytes);
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::string best;
    for (const std::string& stop : stops) {
      if (std::string_view(text).substr(0, end).ends_with(stop) && stop.size() > best.size()) best = stop;
    }
    if (!best.empty()) return {text.substr(0, end - best.size()), best};
  }
  return {text, ""};
}

/// Every way to cut a text into pieces.
void for_every_split(const std::string& text, const std::function<void(const std::vector<std::string>&)>& check) {
  for (unsigned cuts = 0; cuts < 1U << (text.size() - 1); ++cuts) {
    std::vector<std::string> pieces(1);
    for (std::size_t i = 0; i < text.size(); ++i) {
      pieces.back() += text[i];
      if (i + 1 < text.size() && (cuts >> i & 1U) != 0) pieces.emplace_back();
    }
    check(pieces);
  }
}

TEST(DetokenizerTest, EverySplitOfATextAndItsStopGivesTheSame) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {"ab</s>cd", {"</s>"}},        {"aé\n\nUser", {"\n\nU"}},    {"xababac", {"abac"}},         {"aaab", {"aab"}},
      {"世界stop", {"界s"}},         {"x\xE2\x82y\xF0\x9F", {"z"}}, {"abcabd", {"abd", "bc", "c"}}, {"🦙🦙b", {"🦙b", "b"}},
      {"\xED\xA0\x80z", {"\uFFFDz"}}, {"ab\xF0\x9F\x98", {"b\uFFFD"}}, {"nothing", {}},           {"abc", {"abcd", "bcd"}}};
  for (const auto& [text, stops] : cases) {
    const auto [want, want_stop] = expected(text, stops);
    for_every_split(text, [&, &stops = stops, &want = want, &want_stop = want_stop](const std::vector<std::string>& split) {
      const Result result = run(Pieces(split), stops);
      ASSERT_EQ(result.joined, want);
      ASSERT_EQ(result.stop, want_stop);
    });
  }
}

TEST(DetokenizerTest, RandomBytesDecodeAsAWhole) {
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> pieces;
    std::string all;
    for (int i = 0; i < 12; ++i) {
      std::string piece = testing::random_text(random, 2, true);
      if (piece.empty()) piece = static_cast<char>(random() % 256);
      if (piece.size() > 1 && random() % 2 == 0) piece.resize(1 + random() % piece.size());
      all += piece;
      pieces.push_back(piece);
    }
    std::vector<std::string> stops;
    if (round % 3 != 0) {
      const std::string text = as_valid_utf8(all);
      std::size_t at = random() % text.size();
      while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80) --at;
      std::size_t end = std::min(text.size(), at + 1 + random() % 6);
      while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) ++end;
      stops = {text.substr(at, end - at), "aa", "<|"};
    }
    const auto [want, want_stop] = expected(all, stops);
    const Result result = run(Pieces(pieces), stops);
    ASSERT_EQ(result.joined, want);
    ASSERT_EQ(result.stop, want_stop);
  }
}

TEST(DetokenizerTest, NoMoreIsHeldBackThanMayBecomeAStop) {
  const Result result = run(Pieces({"ab<", "/", "x", "<", "</", "s", "y"}), {"</s>"});
  EXPECT_EQ(result.given, (std::vector<std::string>{"ab", "", "</x", "", "<", "", "</sy"}));
}

TEST(DetokenizerTest, TextIsGivenAtOnceWhereNothingStops) {
  const Result result = run(Pieces({"a", "\xC3", "\xA9", "\xF0\x9F", "\xA6\x99!"}), {});
  EXPECT_EQ(result.given, (std::vector<std::string>{"a", "", "é", "", "🦙!"}));
}

TEST(DetokenizerTest, NothingComesAfterAStop) {
  const Pieces pieces({"a", "STOP", "b"});
  Detokenizer detokenizer(pieces.tokenizer(), {"STOP"});
  EXPECT_EQ(detokenizer.push(pieces.tokens()[0]).text, "a");
  EXPECT_TRUE(detokenizer.push(pieces.tokens()[1]).stopped);
  const auto after = detokenizer.push(pieces.tokens()[2]);
  EXPECT_TRUE(after.stopped);
  EXPECT_EQ(after.text, "");
  EXPECT_EQ(detokenizer.finish(), "");
  EXPECT_EQ(detokenizer.matched_stop(), "STOP");
}

TEST(DetokenizerTest, AStopInsideATokenEndsTheTextThere) {
  const Result result = run(Pieces({"one STOP two"}), {"STOP"});
  EXPECT_EQ(result.joined, "one ");
}

TEST(DetokenizerTest, AnUnfinishedCharacterAtTheEndIsReplacedOnce) {
  EXPECT_EQ(run(Pieces({"a", "\xF0\x9F\x98"}), {}).joined, "a\uFFFD");
  EXPECT_EQ(run(Pieces({"a", "\xF0", "\x80"}), {}).joined, "a\uFFFD\uFFFD");
}

TEST(DetokenizerTest, EmptyStopStringsAreIgnored) {
  EXPECT_EQ(run(Pieces({"a", "b"}), {"", "x"}).joined, "ab");
}

TEST(DetokenizerTest, ControlTokensGiveNoText) {
  const Tokenizer tokenizer = testing::build(testing::small_byte_level_spec(PreTokenizer::gpt2));
  Detokenizer detokenizer(tokenizer, {"<|end|>"});
  EXPECT_EQ(detokenizer.push('a').text, "a");
  EXPECT_EQ(detokenizer.push(*tokenizer.spec().eos).text, "");
  EXPECT_EQ(detokenizer.push('b').text, "b");
}

TEST(DetokenizerTest, ALeadingSpaceStays) {
  const Tokenizer tokenizer = testing::build(testing::small_sentencepiece_spec());
  Detokenizer detokenizer(tokenizer, {});
  EXPECT_EQ(detokenizer.push(*tokenizer.find("▁the")).text, " the");
}

// With one long stop string whose beginning repeats, looking back at each token would be quadratic.
TEST(DetokenizerTest, ALongAlmostMatchTakesLinearTime) {
  const std::string stop = std::string(100000, 'a') + "b";
  const Pieces pieces({"a", "c"});
  Detokenizer detokenizer(pieces.tokenizer(), {stop});
  std::size_t given = 0;
  for (int i = 0; i < 1000000; ++i) given += detokenizer.push(pieces.tokens()[0]).text.size();
  EXPECT_EQ(given, 900000U);
  EXPECT_EQ(detokenizer.push(pieces.tokens()[1]).text.size(), 100001U);
}

}  // namespace
}  // namespace fixpoint::engine
