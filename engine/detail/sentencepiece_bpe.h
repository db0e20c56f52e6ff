#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/detail/merger.h"
#include "engine/detail/vocabulary.h"
#include "engine/detail/whole_words.h"

namespace fixpoint::engine::detail {

/// SentencePiece BPE over text that holds no added token: of all adjacent symbols whose join is a piece, those with the
/// best score merge first, the leftmost of equals. Characters that stay outside the vocabulary become their bytes' tokens
/// ("<0x1F>"), or the unknown token where there are none.
class SentencePieceBpe {
 public:
  /// `vocabulary` must outlive the result.
  explicit SentencePieceBpe(const Vocabulary& vocabulary);

  /// `space_prefix`: the text is read as if a space stood before it (unless it is empty).
  void encode(std::string_view text, bool space_prefix, std::vector<TokenId>& out) const;

 private:
  void insert_splits(TokenId piece, std::uint32_t rank);
  [[nodiscard]] TokenId symbol_of(std::string_view character) const;
  void encode_word(std::string_view word, std::vector<TokenId>& symbols, std::vector<TokenId>& out) const;
  void flush(std::vector<TokenId>& symbols, std::vector<TokenId>& out) const;
  void fall_back(std::string_view character, std::vector<TokenId>& out) const;
  [[nodiscard]] bool merges_to_itself(TokenId token, std::string_view word) const;

  const Vocabulary* vocabulary_;
  MergeTable merges_;
  WholeWords whole_;
  std::size_t longest_piece_ = 0;  ///< in bytes
  bool words_part_at_spaces_ = true;  ///< no piece holds a space after another character
  std::array<std::optional<TokenId>, 256> byte_tokens_;
  std::vector<std::string> part_characters_;  ///< characters that are no piece but part of one: symbols past the vocabulary
  std::unordered_map<std::string, TokenId> part_symbols_;
};

}  // namespace fixpoint::engine::detail
