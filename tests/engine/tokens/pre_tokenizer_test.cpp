#include "engine/detail/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <functional>

#include "engine/detail/unicode.h"
#include "engine/utf8.h"
#include "tests/engine/tokens/small_vocabulary.h"

namespace fixpoint::engine {
namespace {

using detail::CharClasses;

std::vector<std::string> words(PreTokenizer kind, std::string_view text) {
  std::vector<std::uint32_t> ends;
  detail::pre_tokenize(kind, text, ends);
  std::vector<std::string> out;
  std::size_t from = 0;
  for (const std::uint32_t end : ends) {
    EXPECT_LT(from, end);
    out.emplace_back(text.substr(from, end - from));
    from = end;
  }
  EXPECT_EQ(from, text.size());
  return out;
}

using Words = std::vector<std::string>;

// A plain backtracking matcher, to read the expressions from as the models' files write them.

struct Symbol {
  char32_t code;
  std::uint8_t classes;
  std::size_t end;  ///< offset behind it
};
using Text = std::span<const Symbol>;
using In = std::function<bool(const Symbol&)>;
struct Item {
  In in;  ///< empty: \s+ must not be followed by \S, or $
  std::size_t least = 1, most = 1;
};
using Sequence = std::vector<Item>;
using Expression = std::vector<Sequence>;  // ordered alternatives
constexpr std::size_t kMany = SIZE_MAX;

bool matches(Text text, std::size_t pos, std::span<const Item> items, bool dollar, std::size_t& end) {
  if (items.empty()) {
    end = pos;
    return true;
  }
  const Item& item = items.front();
  if (!item.in) {
    const bool ok = dollar ? pos == text.size() : pos == text.size() || (text[pos].classes & detail::kWhitespace) != 0;
    return ok && matches(text, pos, items.subspan(1), dollar, end);
  }
  std::size_t count = 0;
  while (count < item.most && pos + count < text.size() && item.in(text[pos + count])) ++count;
  for (;; --count) {
    if (count < item.least) return false;
    if (matches(text, pos + count, items.subspan(1), dollar, end)) return true;
    if (count == 0) return false;
  }
}

/// Pieces that `expression` matches, and those that lie between.
std::vector<std::size_t> find_all(Text text, const Expression& expression, bool dollar) {
  std::vector<std::size_t> cuts;
  std::size_t unmatched = 0;
  std::size_t pos = 0;
  while (pos < text.size()) {
    std::size_t end = pos;
    const bool found = std::any_of(expression.begin(), expression.end(), [&](const Sequence& sequence) {
      return matches(text, pos, sequence, dollar, end);
    });
    if (!found || end == pos) {
      ++pos;
      continue;
    }
    if (unmatched != pos) cuts.push_back(pos);
    cuts.push_back(end);
    unmatched = pos = end;
  }
  if (unmatched != text.size()) cuts.push_back(text.size());
  return cuts;
}

In any(std::uint8_t mask) {
  return [mask](const Symbol& s) { return (s.classes & mask) != 0; };
}
In none(std::uint8_t mask) {
  return [mask](const Symbol& s) { return (s.classes & mask) == 0; };
}
In one(char32_t code) {
  return [code](const Symbol& s) { return s.code == code; };
}
In either_case(char32_t code) {
  return [code](const Symbol& s) { return s.code == code || s.code == code - 32 || (code == 's' && s.code == 0x17F); };
}
const In kNewline = [](const Symbol& s) { return s.code == '\r' || s.code == '\n'; };
constexpr auto L = detail::kLetter;
constexpr auto N = detail::kNumber;
constexpr auto S = detail::kWhitespace;

Expression contractions(In (*letter)(char32_t)) {
  const In quote = one('\'');
  Expression out{{{quote}, {letter('s')}}, {{quote}, {letter('t')}}};
  for (const auto& pair : {U"re", U"ve"}) out.push_back({{quote}, {letter(pair[0])}, {letter(pair[1])}});
  out.push_back({{quote}, {letter('m')}});
  out.push_back({{quote}, {letter('l')}, {letter('l')}});
  out.push_back({{quote}, {letter('d')}});
  return out;
}

Expression gpt2() {
  Expression out = contractions(one);
  const Item space{one(' '), 0, 1};
  for (const In& in : {any(L), any(N), none(L | N | S)}) out.push_back({space, {in, 1, kMany}});
  out.push_back({{any(S), 1, kMany}, {}});
  out.push_back({{any(S), 1, kMany}});
  return out;
}

Expression llama3(std::size_t digits) {
  Expression out = contractions(either_case);
  const In lead = [](const Symbol& s) { return !kNewline(s) && (s.classes & (L | N)) == 0; };
  out.push_back({{lead, 0, 1}, {any(L), 1, kMany}});
  out.push_back({{any(N), 1, digits}});
  out.push_back({{one(' '), 0, 1}, {none(L | N | S), 1, kMany}, {kNewline, 0, kMany}});
  out.push_back({{any(S), 0, kMany}, {kNewline, 1, kMany}});
  out.push_back({{any(S), 1, kMany}, {}});
  out.push_back({{any(S), 1, kMany}});
  return out;
}

std::vector<Expression> expressions(PreTokenizer kind) {
  const auto spaced = [](std::uint8_t mask) { return Expression{{{any(S), 0, 1}, {any(mask), 1, kMany}}}; };
  const Expression newline{{{kNewline}}};
  const Expression cjk{{{[](const Symbol& s) {
                           return (s.code >= 0x4E00 && s.code <= 0x9FA5) || (s.code >= 0x800 && s.code <= 0x4E00) ||
                                  (s.code >= 0xAC00 && s.code <= 0xD7FF);
                         },
                         1, kMany}}};
  switch (kind) {
    case PreTokenizer::gpt2: return {gpt2()};
    case PreTokenizer::llama3: return {llama3(3)};
    case PreTokenizer::qwen2: return {llama3(1)};
    case PreTokenizer::deepseek_coder:
      return {newline, spaced(L), spaced(detail::kPunctuation), cjk, {{{any(N)}}}};
    case PreTokenizer::deepseek_llm: break;
  }
  return {newline, spaced(detail::kDeepseekLlmLetter), spaced(detail::kDeepseekLlmPunctuation),
          {{{any(S), 1, kMany}, {}}}, cjk, {{{any(N), 1, kMany}}}};
}

Words slow_words(PreTokenizer kind, const std::string& text) {
  std::vector<Symbol> symbols;
  for (std::size_t pos = 0; pos < text.size();) {
    const Utf8Step step = utf8_step(text, pos);
    pos += step.length;
    // What is no character is outside every class and no code point that an expression names.
    const bool character = step.kind == Utf8Step::Kind::character;
    symbols.push_back({character ? step.code : 0x7FFFFFFF, character ? CharClasses::get().of(step.code) : std::uint8_t{0}, pos});
  }
  const bool dollar = kind == PreTokenizer::deepseek_llm;
  std::vector<std::size_t> ends{symbols.size()};
  for (const Expression& expression : expressions(kind)) {
    std::vector<std::size_t> next;
    std::size_t from = 0;
    for (const std::size_t end : ends) {
      for (const std::size_t cut : find_all(Text(symbols).subspan(from, end - from), expression, dollar)) next.push_back(from + cut);
      from = end;
    }
    ends = next;
  }
  Words out;
  std::size_t from = 0;
  for (const std::size_t end : ends) {
    out.push_back(text.substr(from, symbols[end - 1].end - from));
    from = symbols[end - 1].end;
  }
  return out;
}

TEST(PreTokenizerTest, CutsAsTheExpressionsDo) {
  std::mt19937 random(4);
  for (const PreTokenizer kind : {PreTokenizer::gpt2, PreTokenizer::llama3, PreTokenizer::qwen2,
                                  PreTokenizer::deepseek_coder, PreTokenizer::deepseek_llm}) {
    for (int i = 0; i < 4000; ++i) {
      const std::string text = testing::random_text(random, 14, i % 4 == 0);
      if (text.empty()) continue;
      ASSERT_EQ(words(kind, text), slow_words(kind, text)) << static_cast<int>(kind) << ": " << text;
    }
  }
}

TEST(PreTokenizerTest, ARunOfSpacesLeavesOneToTheNextWord) {
  EXPECT_EQ(words(PreTokenizer::gpt2, "a   b\t\tc  "), (Words{"a", "  ", " b", "\t", "\t", "c", "  "}));
  EXPECT_EQ(words(PreTokenizer::qwen2, "a   b\t\tc  "), (Words{"a", "  ", " b", "\t", "\tc", "  "}));
}

TEST(PreTokenizerTest, NewlinesEndWhitespaceAndSymbols) {
  EXPECT_EQ(words(PreTokenizer::llama3, "x;\r\n\n  \n   y"), (Words{"x", ";\r\n\n", "  \n", "  ", " y"}));
  EXPECT_EQ(words(PreTokenizer::deepseek_coder, "x;\r\n y"), (Words{"x", ";", "\r", "\n", " y"}));
}

TEST(PreTokenizerTest, DigitsGoByThreesOnesOrAll) {
  EXPECT_EQ(words(PreTokenizer::llama3, "12345"), (Words{"123", "45"}));
  EXPECT_EQ(words(PreTokenizer::qwen2, "123"), (Words{"1", "2", "3"}));
  EXPECT_EQ(words(PreTokenizer::gpt2, " 12345"), (Words{" 12345"}));
  EXPECT_EQ(words(PreTokenizer::deepseek_coder, " 12"), (Words{" ", "1", "2"}));
  EXPECT_EQ(words(PreTokenizer::deepseek_llm, " 12"), (Words{" ", "12"}));
}

TEST(PreTokenizerTest, ContractionsHeedCaseOnlyInGpt2) {
  EXPECT_EQ(words(PreTokenizer::gpt2, "I'Ll we'll"), (Words{"I", "'", "Ll", " we", "'ll"}));
  EXPECT_EQ(words(PreTokenizer::llama3, "I'Ll it'\u017F"), (Words{"I", "'Ll", " it", "'\u017F"}));
}

TEST(PreTokenizerTest, BytesThatAreNotTextAreSymbols) {
  EXPECT_EQ(words(PreTokenizer::qwen2, "a\xFF\xC3 b"), (Words{"a", "\xFF\xC3", " b"}));
}

}  // namespace
}  // namespace fixpoint::engine
