#include "engine/detail/byte_level_bpe.h"

#include <algorithm>

#include "engine/detail/normalise.h"
#include "engine/detail/pre_tokenizer.h"
#include "engine/utf8.h"

namespace fixpoint::engine::detail {
namespace {

/// A byte that is no token, as bytes that never occur in UTF-8 are in some vocabularies, is read as U+FFFD; where that is
/// no token either, as the unknown token; where there is none, as nothing.
std::vector<TokenId> symbols_of_byte(const Vocabulary& vocabulary, std::uint8_t byte) {
  const char character = static_cast<char>(byte);
  if (const auto token = vocabulary.words.find({&character, 1})) {
    return {*token};
  }
  std::vector<TokenId> replacement;
  for (const char& part : kReplacement) {
    if (const auto token = vocabulary.words.find({&part, 1})) {
      replacement.push_back(*token);
    }
  }
  if (replacement.size() == kReplacement.size()) {
    return replacement;
  }
  const auto unknown = vocabulary.unknown();
  return unknown ? std::vector{*unknown} : std::vector<TokenId>{};
}

}  // namespace

ByteLevelBpe::ByteLevelBpe(const Vocabulary& vocabulary)
    : vocabulary_(&vocabulary), merges_(vocabulary.spec.merges.size()), whole_(vocabulary.spec.tokens.size()) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    byte_symbols_[byte] = symbols_of_byte(vocabulary, static_cast<std::uint8_t>(byte));
  }
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.type(id) == TokenType::normal) {
      longest_word_ = std::max(longest_word_, vocabulary.bytes_of(id).size());
    }
  }
}

tl::expected<ByteLevelBpe, LoadError> ByteLevelBpe::build(const Vocabulary& vocabulary, const std::string& file) {
  ByteLevelBpe bpe(vocabulary);
  std::uint32_t rank = 0;
  std::string joined;
  for (const auto& [left, right] : vocabulary.spec.merges) {
    joined.assign(left).append(right);
    std::array<std::optional<TokenId>, 3> ids;
    const std::array<const std::string*, 3> spellings{&left, &right, &joined};
    for (std::size_t i = 0; i < 3; ++i) {
      ids[i] = vocabulary.spellings.find(*spellings[i]);
      if (!ids[i]) {
        return tl::make_unexpected(LoadError{LoadError::Kind::inconsistent, file, "tokenizer merge " + std::to_string(rank),
                                             "'" + left + "' + '" + right + "': '" + *spellings[i] +
                                                 "' is not in the vocabulary"});
      }
    }
    // A merge must not make a control token out of text.
    if (vocabulary.type(*ids[2]) != TokenType::control) {
      bpe.merges_.insert(*ids[0], *ids[1], {rank, *ids[2]});
    }
    ++rank;
  }
  return bpe;
}

void ByteLevelBpe::encode(std::string_view text, std::vector<TokenId>& out) const {
  std::string normalised;
  if (vocabulary_->spec.nfc) {
    text = to_nfc(text, normalised);
  }
  std::vector<std::uint32_t> ends;
  pre_tokenize(vocabulary_->spec.pre, text, ends);
  std::vector<TokenId> symbols;
  std::size_t begin = 0;
  for (const std::uint32_t end : ends) {
    encode_word(text.substr(begin, end - begin), symbols, out);
    begin = end;
  }
}

void ByteLevelBpe::encode_word(std::string_view word, std::vector<TokenId>& symbols, std::vector<TokenId>& out) const {
  if (word.size() <= longest_word_) {
    if (const auto token = vocabulary_->words.find(word)) {
      const auto merges_to_itself = [&] {
        merge_word(word, symbols);
        return symbols.size() == 1 && symbols[0] == *token;
      };
      if (vocabulary_->spec.ignore_merges || whole_.is_whole(*token, merges_to_itself)) {
        out.push_back(*token);
        return;
      }
    }
  }
  merge_word(word, symbols);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

void ByteLevelBpe::merge_word(std::string_view word, std::vector<TokenId>& symbols) const {
  symbols.clear();
  for (const char character : word) {
    const auto& of_byte = byte_symbols_[static_cast<std::uint8_t>(character)];
    symbols.insert(symbols.end(), of_byte.begin(), of_byte.end());
  }
  merge_symbols(merges_, symbols);
}

}  // namespace fixpoint::engine::detail
