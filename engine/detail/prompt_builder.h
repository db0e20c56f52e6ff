#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/tokenizer.h"

namespace fixpoint::engine::detail {

/// Writes a prompt of markers and text. All text between two markers is tokenised as one, as the original does with the
/// rendered template, but never parsed for control tokens.
class PromptBuilder {
 public:
  explicit PromptBuilder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  PromptBuilder& marker(std::string_view spelling);
  PromptBuilder& bos();
  PromptBuilder& eos();
  PromptBuilder& text(std::string_view text);
  /// At the start of a text, for SentencePiece: it begins with one space, whether the tokenizer puts one there or not.
  PromptBuilder& one_space();
  /// Error: the first marker that the tokenizer lacks, in words.
  [[nodiscard]] tl::expected<std::vector<TokenId>, std::string> finish();

 private:
  void flush();
  PromptBuilder& token(std::optional<TokenId> token, std::string_view name);

  const Tokenizer& tokenizer_;
  std::vector<TokenId> tokens_;
  std::string text_;
  std::string missing_;
};

}  // namespace fixpoint::engine::detail
