#include "tests/engine/tokens/small_vocabulary.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <stdexcept>

#include "engine/utf8.h"

namespace fixpoint::engine::testing {
namespace {

void add(TokenizerSpec& spec, std::string spelling, TokenType type, float score = 0) {
  spec.tokens.push_back(std::move(spelling));
  spec.types.push_back(type);
  if (spec.kind == TokenizerSpec::Kind::sentencepiece_bpe) spec.scores.push_back(score);
}

void add_merge(TokenizerSpec& spec, std::string_view left, std::string_view right) {
  spec.merges.emplace_back(spell_bytes(left), spell_bytes(right));
  const std::string joined = spec.merges.back().first + spec.merges.back().second;
  for (const std::string& token : spec.tokens) {
    if (token == joined) return;
  }
  add(spec, joined, TokenType::normal);
}

TokenId id_of(const TokenizerSpec& spec, std::string_view spelling) {
  for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
    if (spec.tokens[i] == spelling) return static_cast<TokenId>(i);
  }
  throw std::logic_error("no such token");
}

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string out;
  for (const char character : bytes) {
    const auto byte = static_cast<std::uint8_t>(character);
    const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    // The others, 0x00-0x20, 0x7F-0xA0 and 0xAD, are U+0100 and on.
    const int place = byte <= 0x20 ? byte : byte == 0xAD ? 67 : byte - 0x7F + 33;
    append_utf8(out, prints ? byte : static_cast<char32_t>(0x100 + place));
  }
  return out;
}

TokenizerSpec small_byte_level_spec(PreTokenizer pre) {
  TokenizerSpec spec;
  spec.pre = pre;
  for (int byte = 0; byte < 256; ++byte) {
    const char character = static_cast<char>(byte);
    add(spec, spell_bytes({&character, 1}), TokenType::normal);
  }
  const std::array<std::array<std::string_view, 2>, 14> merges{{{"i", "n"},    {"in", "t"}, {" ", "int"}, {"a", "a"},
                                                                 {"aa", "aa"},  {" ", " "},  {"  ", "  "}, {"\n", "\n"},
                                                                 {"e", "n"},    {"en", "d"}, {"<", "|"},   {"|", ">"},
                                                                 {"\xC3", "\xA9"}, {"1", "2"}}};
  for (const auto& [left, right] : merges) add_merge(spec, left, right);
  add(spec, "<|end|>", TokenType::control);
  add(spec, "<|im_start|>", TokenType::control);
  add(spec, "<tool>", TokenType::user_defined);
  add(spec, "<tool_call>", TokenType::user_defined);
  spec.eos = id_of(spec, "<|end|>");
  return spec;
}

TokenizerSpec small_sentencepiece_spec() {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::sentencepiece_bpe;
  add(spec, "<unk>", TokenType::unknown);
  add(spec, "<s>", TokenType::control);
  add(spec, "</s>", TokenType::control);
  for (int byte = 0; byte < 256; ++byte) {
    std::array<char, 8> name{};
    std::snprintf(name.data(), name.size(), "<0x%02X>", static_cast<unsigned>(byte));
    add(spec, name.data(), TokenType::byte);
  }
  float score = 0;
  for (const char* piece : {"▁▁", "he", "▁t", "▁the", "aa", "aaaa", "in", "▁in", "▁▁▁▁", "<s", "s>", "<tool"}) {
    add(spec, piece, TokenType::normal, score -= 1);
  }
  for (const char* piece : {"▁", "t", "h", "e", "a", "i", "n", "s", "<", ">", "/", "é", "世", "o", "l"}) {
    add(spec, piece, TokenType::normal, score -= 1);
  }
  add(spec, "<tool>", TokenType::user_defined);
  spec.unk = 0;
  spec.bos = 1;
  spec.eos = 2;
  spec.add_bos = true;
  spec.add_space_prefix = true;
  return spec;
}

Tokenizer build(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::build(std::move(spec), "small vocabulary");
  if (!tokenizer) throw std::logic_error(tokenizer.error().message());
  return std::move(*tokenizer);
}

std::string random_text(std::mt19937& random, int most, bool any_bytes) {
  static constexpr std::array kFragments{
      "a",   "aa",   "int", " int", "the", " ",  "  ", "\t", "\n", "\r\n", "\n\n", "1",  "12", "123", "'s", "'LL", "'",
      ".",   "(",    ");",  "_",    "é",   "e\u0301", "世", "世界", "の", "한", "🦙", "👩‍💻", "\u00a0", "\u3000", "½", "٣",
      "<",   "<|",   "<|end|>", "<|im_start|>", "<tool>", "<tool_call>", "<s>", "</s>", "<0x0A>", "|>", "▁", "\u0085",
      "\u0301", "\u0316", "ſ", "𐐀", "z"};
  std::string text;
  for (int left = std::uniform_int_distribution(0, most)(random); left > 0; --left) {
    if (any_bytes && random() % 3 == 0) {
      text += static_cast<char>(random() % 256);
    } else {
      text += kFragments[random() % kFragments.size()];
    }
  }
  return text;
}

}  // namespace fixpoint::engine::testing
