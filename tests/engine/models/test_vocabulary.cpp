#include "tests/engine/models/test_vocabulary.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::test_models {
namespace {

using engine::TokenId;
using engine::TokenizerSpec;
using engine::TokenType;

std::string utf8(unsigned code) {  // below U+0800
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

/// The printable character that byte-level vocabularies spell a byte with.
std::vector<std::string> byte_spellings() {
  std::vector<std::string> out;
  unsigned extra = 0;
  for (unsigned b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    out.push_back(utf8(printable ? b : 256 + extra++));
  }
  return out;
}

/// Best first; each makes a token that later ones may use.
constexpr std::array<std::pair<std::string_view, std::string_view>, 32> kMerges{{
    {"Ġ", "Ġ"}, {"i", "n"}, {"r", "e"}, {"h", "e"}, {"Ġ", "t"}, {"Ġ", "a"}, {"o", "n"}, {"e", "r"}, {"Ġt", "he"},
    {"t", "u"}, {"r", "n"}, {"re", "tu"}, {"retu", "rn"}, {"Ġ", "="}, {"d", "e"}, {"de", "f"}, {"i", "f"}, {"f", "o"},
    {"fo", "r"}, {"Ġ", "i"}, {"Ġi", "n"}, {"ĠĠ", "ĠĠ"}, {"s", "e"}, {"l", "f"}, {"se", "lf"}, {"a", "n"}, {"an", "d"},
    {"p", "r"}, {"pr", "in"}, {"prin", "t"}, {"Ċ", "Ċ"}, {"Ġ", "+"},
}};

void add(TokenizerSpec& spec, std::string text, TokenType type, float score = 0.0F) {
  spec.tokens.push_back(std::move(text));
  spec.types.push_back(type);
  if (spec.kind == TokenizerSpec::Kind::sentencepiece_bpe) spec.scores.push_back(score);
}

void check_size(const TokenizerSpec& spec, std::int64_t size, std::int64_t still_to_come) {
  if (static_cast<std::int64_t>(spec.tokens.size()) + still_to_come > size) {
    throw std::invalid_argument("a test vocabulary of " + std::to_string(size) + " tokens is too small");
  }
}

}  // namespace

TokenizerSpec byte_level_vocabulary(std::int64_t size) {
  constexpr std::array<std::string_view, 3> kSpecial{"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  TokenizerSpec spec;
  spec.pre = engine::PreTokenizer::qwen2;
  spec.nfc = true;
  auto bytes = byte_spellings();
  std::sort(bytes.begin(), bytes.end());
  for (auto& b : bytes) add(spec, b, TokenType::normal);
  for (const auto& [a, b] : kMerges) {
    spec.merges.emplace_back(a, b);
    add(spec, std::string(a) + std::string(b), TokenType::normal);
  }
  check_size(spec, size, kSpecial.size());
  for (int i = 0; static_cast<std::int64_t>(spec.tokens.size() + kSpecial.size()) < size; ++i) {
    add(spec, "Ġw" + std::to_string(i), TokenType::normal);
  }
  const auto first = static_cast<TokenId>(spec.tokens.size());
  for (const auto s : kSpecial) add(spec, std::string(s), TokenType::control);
  spec.bos = first;
  spec.eos = first + 2;
  spec.stop_tokens = {first + 2, first};
  return spec;
}

TokenizerSpec sentencepiece_vocabulary(std::int64_t size) {
  TokenizerSpec spec;
  spec.kind = TokenizerSpec::Kind::sentencepiece_bpe;
  spec.add_bos = spec.add_space_prefix = true;
  add(spec, "<unk>", TokenType::unknown);
  add(spec, "<s>", TokenType::control);
  add(spec, "</s>", TokenType::control);
  for (int b = 0; b < 256; ++b) {
    std::array<char, 8> name{};
    std::snprintf(name.data(), name.size(), "<0x%02X>", b);
    add(spec, name.data(), TokenType::byte);
  }
  float score = 0.0F;
  for (const auto piece : {"▁t", "he", "▁the", "in", "re", "on", "▁a", "er", "▁in", "an", "and", "▁and"}) {
    add(spec, piece, TokenType::normal, score--);
  }
  for (const auto piece : {"▁", "a", "b", "c", "d", "e", "f", "h", "i", "l", "n", "o", "r", "s", "t", "u", "w", "0", "1", "2"}) {
    add(spec, piece, TokenType::normal, score--);
  }
  check_size(spec, size, 0);
  for (int i = 0; static_cast<std::int64_t>(spec.tokens.size()) < size; ++i) {
    add(spec, "▁w" + std::to_string(i), TokenType::normal, score--);
  }
  spec.unk = 0;
  spec.bos = 1;
  spec.eos = 2;
  spec.stop_tokens = {2};
  return spec;
}

}  // namespace fixpoint::test_models
