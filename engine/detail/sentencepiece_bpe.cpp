#include "engine/detail/sentencepiece_bpe.h"

#include <algorithm>

#include "engine/utf8.h"

namespace fixpoint::engine::detail {
namespace {

constexpr TokenId kNoSymbol = -1;

/// `text` as the pieces see it: with its prefix, and every ▁ a space, which the originals do not tell from it.
std::string prepare(std::string_view text, bool space_prefix) {
  std::string out;
  out.reserve(text.size() + 1);
  if (space_prefix) {
    out += ' ';
  }
  std::size_t from = 0;
  for (std::size_t at = text.find(kSpaceMark); at != std::string_view::npos; at = text.find(kSpaceMark, from)) {
    out.append(text, from, at - from) += ' ';
    from = at + kSpaceMark.size();
  }
  return out.append(text, from);
}

}  // namespace

SentencePieceBpe::SentencePieceBpe(const Vocabulary& vocabulary)
    : vocabulary_(&vocabulary), whole_(vocabulary.spec.tokens.size()) {
  std::vector<TokenId> pieces;
  std::size_t splits = 0;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string& bytes = vocabulary.bytes_of(id);
    if (vocabulary.type(id) == TokenType::byte && bytes.size() == 1) {
      byte_tokens_[static_cast<std::uint8_t>(bytes[0])] = id;
    }
    if (vocabulary.type(id) != TokenType::normal || bytes.empty()) {
      continue;
    }
    pieces.push_back(id);
    longest_piece_ = std::max(longest_piece_, bytes.size());
    for (std::size_t pos = 0; pos < bytes.size();) {
      const std::size_t length = utf8_step(bytes, pos).length;
      const std::string character = bytes.substr(pos, length);
      words_part_at_spaces_ = words_part_at_spaces_ && (pos == 0 || character != " " || bytes[pos - 1] == ' ');
      if (!vocabulary.words.find(character) && !part_symbols_.contains(character)) {
        part_symbols_.emplace(character, vocabulary.size() + static_cast<TokenId>(part_characters_.size()));
        part_characters_.push_back(character);
      }
      splits += pos == 0 ? 0 : 1;
      pos += length;
    }
  }
  const std::vector<float>& scores = vocabulary.spec.scores;
  const auto score = [&](TokenId id) { return scores[static_cast<std::size_t>(id)]; };
  std::stable_sort(pieces.begin(), pieces.end(), [&](TokenId a, TokenId b) { return score(a) > score(b); });
  merges_ = MergeTable(splits);
  std::uint32_t rank = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    rank += i > 0 && score(pieces[i]) != score(pieces[i - 1]) ? 1 : 0;
    insert_splits(pieces[i], rank);
  }
}

void SentencePieceBpe::insert_splits(TokenId piece, std::uint32_t rank) {
  const std::string_view bytes = vocabulary_->bytes_of(piece);
  const auto symbol = [&](std::string_view part) {
    const bool one_character = utf8_step(part, 0).length == part.size();
    return one_character ? symbol_of(part) : vocabulary_->words.find(part).value_or(kNoSymbol);
  };
  for (std::size_t at = utf8_step(bytes, 0).length; at < bytes.size(); at += utf8_step(bytes, at).length) {
    const TokenId left = symbol(bytes.substr(0, at));
    const TokenId right = left == kNoSymbol ? kNoSymbol : symbol(bytes.substr(at));
    if (right != kNoSymbol) {
      merges_.insert(left, right, {rank, piece});
    }
  }
}

TokenId SentencePieceBpe::symbol_of(std::string_view character) const {
  if (const auto token = vocabulary_->words.find(character)) {
    return *token;
  }
  if (part_symbols_.empty()) {
    return kNoSymbol;
  }
  const auto part = part_symbols_.find(std::string(character));
  return part == part_symbols_.end() ? kNoSymbol : part->second;
}

void SentencePieceBpe::encode(std::string_view text, bool space_prefix, std::vector<TokenId>& out) const {
  if (text.empty()) {
    return;
  }
  const std::string prepared = prepare(text, space_prefix);
  const std::string_view all = prepared;
  std::vector<TokenId> symbols;
  std::size_t begin = 0;
  for (std::size_t at = 1; words_part_at_spaces_ && at < all.size(); ++at) {
    if (all[at] == ' ' && all[at - 1] != ' ') {
      encode_word(all.substr(begin, at - begin), symbols, out);
      begin = at;
    }
  }
  encode_word(all.substr(begin), symbols, out);
}

void SentencePieceBpe::encode_word(std::string_view word, std::vector<TokenId>& symbols, std::vector<TokenId>& out) const {
  if (word.size() <= longest_piece_) {
    const auto token = vocabulary_->words.find(word);
    if (token && whole_.is_whole(*token, [&] { return merges_to_itself(*token, word); })) {
      out.push_back(*token);
      return;
    }
  }
  symbols.clear();
  for (std::size_t pos = 0; pos < word.size();) {
    const std::string_view character = word.substr(pos, utf8_step(word, pos).length);
    pos += character.size();
    if (const TokenId symbol = symbol_of(character); symbol != kNoSymbol) {
      symbols.push_back(symbol);
    } else {
      // Nothing merges across a character that is in no piece.
      flush(symbols, out);
      fall_back(character, out);
    }
  }
  flush(symbols, out);
}

void SentencePieceBpe::flush(std::vector<TokenId>& symbols, std::vector<TokenId>& out) const {
  merge_symbols(merges_, symbols);
  for (const TokenId symbol : symbols) {
    if (symbol < vocabulary_->size()) {
      out.push_back(symbol);
    } else {
      fall_back(part_characters_[static_cast<std::size_t>(symbol - vocabulary_->size())], out);
    }
  }
  symbols.clear();
}

void SentencePieceBpe::fall_back(std::string_view character, std::vector<TokenId>& out) const {
  const bool have_bytes = std::all_of(character.begin(), character.end(), [&](char byte) {
    return byte_tokens_[static_cast<std::uint8_t>(byte)].has_value();
  });
  if (have_bytes) {
    for (const char byte : character) {
      out.push_back(*byte_tokens_[static_cast<std::uint8_t>(byte)]);
    }
  } else if (const auto unknown = vocabulary_->unknown()) {
    out.push_back(*unknown);
  }
}

bool SentencePieceBpe::merges_to_itself(TokenId token, std::string_view word) const {
  std::vector<TokenId> symbols;
  for (std::size_t pos = 0; pos < word.size();) {
    const std::string_view character = word.substr(pos, utf8_step(word, pos).length);
    symbols.push_back(symbol_of(character));
    pos += character.size();
  }
  merge_symbols(merges_, symbols);
  return symbols.size() == 1 && symbols[0] == token;
}

}  // namespace fixpoint::engine::detail
