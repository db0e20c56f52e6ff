#include "engine/detail/prompt_builder.h"

#include <utility>

namespace fixpoint::engine::detail {

PromptBuilder& PromptBuilder::marker(std::string_view spelling) {
  return token(tokenizer_.find(spelling), "the token '" + std::string(spelling) + "'");
}

PromptBuilder& PromptBuilder::bos() { return token(tokenizer_.spec().bos, "a BOS token"); }

PromptBuilder& PromptBuilder::eos() { return token(tokenizer_.spec().eos, "an EOS token"); }

PromptBuilder& PromptBuilder::text(std::string_view text) {
  text_ += text;
  return *this;
}

PromptBuilder& PromptBuilder::one_space() {
  const TokenizerSpec& spec = tokenizer_.spec();
  const bool follows_token = !tokens_.empty();
  const bool is_put_there = spec.kind == TokenizerSpec::Kind::sentencepiece_bpe && spec.add_space_prefix &&
                            !(spec.space_prefix_once && follows_token);
  if (!is_put_there) text_ += ' ';
  return *this;
}

PromptBuilder& PromptBuilder::token(std::optional<TokenId> token, std::string_view name) {
  flush();
  if (token) {
    tokens_.push_back(*token);
  } else if (missing_.empty()) {
    missing_ = name;
  }
  return *this;
}

void PromptBuilder::flush() {
  const auto ids = tokens_.empty() ? tokenizer_.encode(text_, Tokenizer::ControlTokens::as_text)
                                   : tokenizer_.encode_after_control(text_);
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  text_.clear();
}

tl::expected<std::vector<TokenId>, std::string> PromptBuilder::finish() {
  flush();
  if (!missing_.empty()) return tl::make_unexpected(std::move(missing_));
  return std::move(tokens_);
}

}  // namespace fixpoint::engine::detail
