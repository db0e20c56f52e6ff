#include "engine/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/tokens/small_vocabulary.h"

namespace fixpoint::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::build;
using testing::random_text;
using testing::small_byte_level_spec;
using testing::small_sentencepiece_spec;

constexpr auto kAsText = Tokenizer::ControlTokens::as_text;
constexpr auto kParse = Tokenizer::ControlTokens::parse;

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text, Tokenizer::ControlTokens control = kAsText) {
  std::vector<std::string> out;
  for (const TokenId token : tokenizer.encode(text, control)) {
    out.push_back(tokenizer.is_control(token) ? "[" + tokenizer.spec().tokens[static_cast<std::size_t>(token)] + "]"
                                              : std::string(tokenizer.token_bytes(token)));
  }
  return out;
}

constexpr std::array kPreTokenizers{PreTokenizer::gpt2, PreTokenizer::llama3, PreTokenizer::qwen2,
                                    PreTokenizer::deepseek_coder, PreTokenizer::deepseek_llm};

std::vector<Tokenizer> every_kind() {
  std::vector<Tokenizer> out;
  for (const PreTokenizer pre : kPreTokenizers) out.push_back(build(small_byte_level_spec(pre)));
  out.push_back(build(small_sentencepiece_spec()));
  TokenizerSpec once = small_sentencepiece_spec();
  once.space_prefix_once = true;
  out.push_back(build(std::move(once)));
  return out;
}

TEST(TokenizerTest, MergesWithinWordsByRank) {
  const Tokenizer tokenizer = build(small_byte_level_spec(PreTokenizer::gpt2));
  EXPECT_THAT(pieces(tokenizer, "int x"), ElementsAre("int", " ", "x"));
  EXPECT_THAT(pieces(tokenizer, "x int"), ElementsAre("x", " int"));
  EXPECT_THAT(pieces(tokenizer, "aaaaaaa"), ElementsAre("aaaa", "aa", "a"));
}

TEST(TokenizerTest, EmptyTextHasNoTokens) {
  for (const Tokenizer& tokenizer : every_kind()) {
    EXPECT_THAT(tokenizer.encode("", kAsText), ElementsAre());
    EXPECT_THAT(tokenizer.encode("", kParse), ElementsAre());
    EXPECT_EQ(tokenizer.decode({}), "");
  }
}

TEST(TokenizerTest, ControlTokensAreParsedOnlyWhenAsked) {
  const Tokenizer tokenizer = build(small_byte_level_spec(PreTokenizer::qwen2));
  EXPECT_THAT(pieces(tokenizer, "a<|end|>a", kParse), ElementsAre("a", "[<|end|>]", "a"));
  EXPECT_THAT(pieces(tokenizer, "a<|end|>a"), ElementsAre("a", "<|", "end", "|>", "a"));
}

TEST(TokenizerTest, UserDefinedTokensAreAlwaysTaken) {
  const Tokenizer tokenizer = build(small_byte_level_spec(PreTokenizer::qwen2));
  EXPECT_THAT(pieces(tokenizer, "a<tool>a"), ElementsAre("a", "<tool>", "a"));
  const Tokenizer pieces_tokenizer = build(small_sentencepiece_spec());
  EXPECT_THAT(pieces(pieces_tokenizer, "a<tool>a"), ElementsAre(" ", "a", "<tool>", " ", "a"));
}

TEST(TokenizerTest, TheLongestAddedTokenWins) {
  TokenizerSpec spec = small_byte_level_spec(PreTokenizer::gpt2);
  spec.tokens.insert(spec.tokens.end(), {"<tool_call>x", "ool"});
  spec.types.insert(spec.types.end(), 2, TokenType::user_defined);
  const Tokenizer tokenizer = build(std::move(spec));
  EXPECT_THAT(pieces(tokenizer, "<tool_call>x<tool_call>y"), ElementsAre("<tool_call>x", "<tool_call>", "y"));
  EXPECT_THAT(pieces(tokenizer, "<tool<tool>"), ElementsAre("<", "t", "ool", "<tool>"));
}

TEST(TokenizerTest, NoTextBecomesAControlToken) {
  std::mt19937 random(1);
  for (const Tokenizer& tokenizer : every_kind()) {
    for (int i = 0; i < 2000; ++i) {
      const std::string text = random_text(random, 20, i % 2 == 0);
      for (const TokenId token : tokenizer.encode(text, kAsText)) ASSERT_FALSE(tokenizer.is_control(token)) << text;
      for (const TokenId token : tokenizer.encode_after_control(text)) ASSERT_FALSE(tokenizer.is_control(token)) << text;
    }
  }
}

TEST(TokenizerTest, AMergeIntoAControlTokenIsLeftOut) {
  TokenizerSpec spec = small_byte_level_spec(PreTokenizer::gpt2);
  spec.tokens.insert(spec.tokens.end(), {"<|e", "<|en", "<|end"});
  spec.types.insert(spec.types.end(), {TokenType::normal, TokenType::normal, TokenType::control});
  spec.merges.insert(spec.merges.end(), {{"<|", "e"}, {"<|e", "n"}, {"<|", "end"}, {"<|en", "d"}});
  const Tokenizer tokenizer = build(std::move(spec));
  EXPECT_THAT(pieces(tokenizer, "<|end|"), ElementsAre("<|", "end", "|"));
}

TEST(TokenizerTest, StopTokensAreControlTokensWhateverTheFileSays) {
  TokenizerSpec spec = small_byte_level_spec(PreTokenizer::gpt2);
  spec.types[static_cast<std::size_t>(*spec.eos)] = TokenType::normal;
  const Tokenizer tokenizer = build(std::move(spec));
  EXPECT_TRUE(tokenizer.is_control(*tokenizer.spec().eos));
  EXPECT_THAT(pieces(tokenizer, "<|end|>"), ElementsAre("<|", "end", "|>"));
}

TEST(TokenizerTest, AnUnknownTokenThatIsAControlTokenIsNotUsed) {
  TokenizerSpec spec = small_sentencepiece_spec();
  for (TokenType& type : spec.types) type = type == TokenType::byte ? TokenType::unused : type;
  spec.eos = spec.unk;
  EXPECT_THAT(pieces(build(std::move(spec)), "aZ"), ElementsAre(" ", "a"));
}

TEST(TokenizerTest, IgnoreMergesTakesAWholeWord) {
  TokenizerSpec spec = small_byte_level_spec(PreTokenizer::llama3);
  spec.tokens.emplace_back("zen");  // no merge makes it
  spec.types.push_back(TokenType::normal);
  EXPECT_THAT(pieces(build(spec), "zen"), ElementsAre("z", "en"));
  spec.ignore_merges = true;
  EXPECT_THAT(pieces(build(spec), "zen"), ElementsAre("zen"));
  EXPECT_THAT(pieces(build(spec), "zend"), ElementsAre("z", "end"));
}

TEST(TokenizerTest, NfcIsAppliedWhereTheSpecSaysSo) {
  TokenizerSpec spec = small_byte_level_spec(PreTokenizer::qwen2);
  EXPECT_THAT(pieces(build(spec), "e\u0301"), ElementsAre("e", "\xCC", "\x81"));
  spec.nfc = true;
  EXPECT_THAT(pieces(build(spec), "e\u0301"), ElementsAre("é"));
}

TEST(TokenizerTest, AByteThatIsNoTokenIsReadAsReplacementCharacter) {
  TokenizerSpec spec = small_byte_level_spec(PreTokenizer::gpt2);
  spec.types[0xFF] = TokenType::unused;
  const Tokenizer tokenizer = build(std::move(spec));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xFF"
                                              "b",
                                              kAsText)),
            "a\uFFFD"
            "b");
}

TEST(TokenizerTest, DecodingGivesTheTextBack) {
  std::mt19937 random(2);
  for (const Tokenizer& tokenizer : every_kind()) {
    const bool byte_level = tokenizer.spec().kind == TokenizerSpec::Kind::byte_level_bpe;
    for (int i = 0; i < 2000; ++i) {
      std::string text = random_text(random, 20, byte_level && i % 2 == 0);
      // SentencePiece does not tell ▁ from a space, and puts one more after each added token.
      if (!byte_level && (text.find("▁") != std::string::npos || text.find("<tool>") != std::string::npos)) continue;
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, kAsText)), text);
    }
  }
}

TEST(TokenizerTest, DecodingShowsControlTokensOnlyWhenAsked) {
  const Tokenizer tokenizer = build(small_byte_level_spec(PreTokenizer::gpt2));
  const auto ids = tokenizer.encode("a<|end|>b", kParse);
  EXPECT_EQ(tokenizer.decode(ids), "ab");
  EXPECT_EQ(tokenizer.decode(ids, true), "a<|end|>b");
}

TEST(TokenizerTest, IdsOutOfRangeAddNothing) {
  const Tokenizer tokenizer = build(small_byte_level_spec(PreTokenizer::gpt2));
  EXPECT_EQ(tokenizer.token_bytes(-1), "");
  EXPECT_EQ(tokenizer.token_bytes(static_cast<TokenId>(tokenizer.size())), "");
  EXPECT_FALSE(tokenizer.is_control(-1));
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{-5, 'a', 1 << 30}), "a");
}

TEST(TokenizerTest, FindKnowsEverySpelling) {
  const Tokenizer tokenizer = build(small_byte_level_spec(PreTokenizer::gpt2));
  for (TokenId id = 0; id < tokenizer.size(); ++id) {
    EXPECT_EQ(tokenizer.find(tokenizer.spec().tokens[static_cast<std::size_t>(id)]), id);
  }
  EXPECT_EQ(tokenizer.find("nowhere"), std::nullopt);
}

TEST(SentencePieceTest, ASpaceStandsBeforeEachStretchOfText) {
  const Tokenizer tokenizer = build(small_sentencepiece_spec());
  EXPECT_THAT(pieces(tokenizer, "the"), ElementsAre(" the"));
  EXPECT_THAT(pieces(tokenizer, " the"), ElementsAre("  ", "t", "he"));  // "▁▁" is the best piece of all
  EXPECT_THAT(pieces(tokenizer, "<s>the</s>the", kParse), ElementsAre("[<s>]", " the", "[</s>]", " the"));
}

TEST(SentencePieceTest, ThePrefixCanBeKeptToTheStart) {
  TokenizerSpec spec = small_sentencepiece_spec();
  spec.space_prefix_once = true;
  const Tokenizer tokenizer = build(spec);
  EXPECT_THAT(pieces(tokenizer, "the<s>the", kParse), ElementsAre(" the", "[<s>]", "t", "he"));
  EXPECT_THAT(pieces(tokenizer, "<s>the", kParse), ElementsAre("[<s>]", "t", "he"));
  EXPECT_EQ(tokenizer.encode_after_control("the"), tokenizer.encode("<s>the", kParse).size() == 3
                                                       ? std::vector<TokenId>({*tokenizer.find("t"), *tokenizer.find("he")})
                                                       : std::vector<TokenId>());
  spec.add_space_prefix = false;
  EXPECT_THAT(pieces(build(spec), "the"), ElementsAre("t", "he"));
}

TEST(SentencePieceTest, TheBestScoreMergesFirst) {
  const Tokenizer tokenizer = build(small_sentencepiece_spec());
  // "he" is better than "▁t", and "▁the" is made of "▁t" + "he".
  EXPECT_THAT(pieces(tokenizer, "the the"), ElementsAre(" the", " the"));
  EXPECT_THAT(pieces(tokenizer, "aaaaaaa"), ElementsAre(" ", "aaaa", "aa", "a"));
}

TEST(SentencePieceTest, UnknownCharactersBecomeTheirBytes) {
  const Tokenizer tokenizer = build(small_sentencepiece_spec());
  EXPECT_THAT(pieces(tokenizer, "é🦙"), ElementsAre(" ", "é", "\xF0", "\x9F", "\xA6", "\x99"));
  EXPECT_THAT(pieces(tokenizer, "\xFF"), ElementsAre(" ", "\xFF"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xFF\xC3 世🦙", kAsText)), "a\xFF\xC3 世🦙");
}

TEST(SentencePieceTest, TextThatSpellsAByteTokenIsText) {
  const Tokenizer tokenizer = build(small_sentencepiece_spec());
  EXPECT_GT(tokenizer.encode("<0x0A>", kAsText).size(), 3U);
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("<0x0A>", kAsText)), "<0x0A>");
}

TEST(SentencePieceTest, WithoutByteTokensTheUnknownTokenStands) {
  TokenizerSpec spec = small_sentencepiece_spec();
  for (TokenType& type : spec.types) type = type == TokenType::byte ? TokenType::unused : type;
  const Tokenizer tokenizer = build(spec);
  EXPECT_EQ(tokenizer.encode("aZ", kAsText).back(), 0);
  spec.unk.reset();
  EXPECT_THAT(pieces(build(spec), "aZa"), ElementsAre(" ", "a", "a"));
}

TEST(SentencePieceTest, CharactersThatAreOnlyPartOfPiecesMerge) {
  TokenizerSpec spec = small_sentencepiece_spec();
  spec.tokens.emplace_back("QX");  // neither Q nor X is a piece
  spec.types.push_back(TokenType::normal);
  spec.scores.push_back(-50);
  const Tokenizer tokenizer = build(std::move(spec));
  EXPECT_THAT(pieces(tokenizer, "QXQ"), ElementsAre(" ", "QX", "Q"));
  EXPECT_EQ(tokenizer.encode("Q", kAsText).back(), *tokenizer.find("<0x51>"));
}

TEST(SentencePieceTest, PiecesMayCrossSpaces) {
  TokenizerSpec spec = small_sentencepiece_spec();
  spec.tokens.insert(spec.tokens.end(), {"a▁", "a▁a"});
  spec.types.insert(spec.types.end(), 2, TokenType::normal);
  spec.scores.insert(spec.scores.end(), {-60, -61});
  EXPECT_THAT(pieces(build(std::move(spec)), "a a"), ElementsAre(" ", "a a"));
}

// The whole text is one word here, or a million: a quadratic routine would not end within the test's time limit.
TEST(TokenizerTest, AMegabyteOfOneCharacterTakesLinearTime) {
  std::vector<Tokenizer> tokenizers;
  for (const PreTokenizer pre : {PreTokenizer::gpt2, PreTokenizer::llama3, PreTokenizer::deepseek_llm}) {
    tokenizers.push_back(build(small_byte_level_spec(pre)));
  }
  tokenizers.push_back(build(small_sentencepiece_spec()));
  for (const Tokenizer& tokenizer : tokenizers) {
    for (const char* unit : {"a", " ", "\n", "\u0301", "1"}) {
      std::string text;
      while (text.size() < (std::size_t{1} << 20)) text += unit;
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, kAsText)), text) << unit;
    }
  }
}

struct BadSpec {
  const char* name;
  void (*spoil)(TokenizerSpec&);
  const char* message;
};

class TokenizerSpecTest : public ::testing::TestWithParam<BadSpec> {};

TEST_P(TokenizerSpecTest, IsRefusedWithTheFieldsName) {
  TokenizerSpec spec = small_byte_level_spec(PreTokenizer::gpt2);
  if (std::string_view(GetParam().name).starts_with("SentencePiece")) spec = small_sentencepiece_spec();
  GetParam().spoil(spec);
  const auto tokenizer = Tokenizer::build(std::move(spec), "model.gguf");
  ASSERT_FALSE(tokenizer);
  EXPECT_THAT(tokenizer.error().message(), HasSubstr(GetParam().message));
  EXPECT_THAT(tokenizer.error().message(), HasSubstr("model.gguf: "));
}

INSTANTIATE_TEST_SUITE_P(
    Bad, TokenizerSpecTest,
    ::testing::Values(
        BadSpec{"Empty", [](TokenizerSpec& spec) { spec = {}; }, "the vocabulary is empty"},
        BadSpec{"TooFewTypes", [](TokenizerSpec& spec) { spec.types.pop_back(); }, "token types: 273 entries for 274 tokens"},
        BadSpec{"EosOutside", [](TokenizerSpec& spec) { spec.eos = 274; }, "eos token: id 274 is outside"},
        BadSpec{"NegativeUnknown", [](TokenizerSpec& spec) { spec.unk = -1; }, "unknown token: id -1 is outside"},
        BadSpec{"StopOutside", [](TokenizerSpec& spec) { spec.stop_tokens = {5, 999}; }, "stop token: id 999 is outside"},
        BadSpec{"Twice", [](TokenizerSpec& spec) { spec.tokens[270] = "a"; }, "token 270: 'a' is in the vocabulary twice, first as 97"},
        BadSpec{"UnknownLeft", [](TokenizerSpec& spec) { spec.merges[3].first = "nowhere"; }, "merge 3: 'nowhere' + 'a': 'nowhere' is not"},
        BadSpec{"UnknownResult", [](TokenizerSpec& spec) { spec.merges.emplace_back("z", "q"); }, "merge 14: 'z' + 'q': 'zq' is not"},
        BadSpec{"SentencePieceScores", [](TokenizerSpec& spec) { spec.scores.clear(); }, "scores: 0 entries for"},
        BadSpec{"SentencePieceNan", [](TokenizerSpec& spec) { spec.scores[7] = NAN; }, "score 7: is not a number"},
        BadSpec{"SentencePieceLong", [](TokenizerSpec& spec) { spec.tokens[260] = std::string(2000, 'x'); }, "token 260: is longer than"}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace fixpoint::engine
