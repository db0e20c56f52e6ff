#pragma once

#include <array>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/detail/merger.h"
#include "engine/detail/vocabulary.h"
#include "engine/detail/whole_words.h"

namespace fixpoint::engine::detail {

/// Byte-level BPE over text that holds no added token: normalise, cut into words, merge the bytes of each word.
class ByteLevelBpe {
 public:
  /// `vocabulary` must outlive the result. Error: a merge that names an unknown token.
  [[nodiscard]] static tl::expected<ByteLevelBpe, LoadError> build(const Vocabulary& vocabulary, const std::string& file);

  void encode(std::string_view text, std::vector<TokenId>& out) const;

 private:
  explicit ByteLevelBpe(const Vocabulary& vocabulary);
  void encode_word(std::string_view word, std::vector<TokenId>& symbols, std::vector<TokenId>& out) const;
  void merge_word(std::string_view word, std::vector<TokenId>& symbols) const;

  const Vocabulary* vocabulary_;
  MergeTable merges_;
  WholeWords whole_;
  std::size_t longest_word_ = 0;  ///< bytes of the longest normal token
  std::array<std::vector<TokenId>, 256> byte_symbols_;
};

}  // namespace fixpoint::engine::detail
