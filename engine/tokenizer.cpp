#include "engine/tokenizer.h"

#include <utility>
#include <variant>

#include "engine/detail/added_tokens.h"
#include "engine/detail/byte_level_bpe.h"
#include "engine/detail/sentencepiece_bpe.h"
#include "engine/detail/vocabulary.h"

namespace fixpoint::engine {

using detail::AddedTokens;
using detail::ByteLevelBpe;
using detail::SentencePieceBpe;
using detail::Vocabulary;

struct Tokenizer::Impl {
  std::unique_ptr<const Vocabulary> vocabulary;
  AddedTokens added;
  std::variant<ByteLevelBpe, SentencePieceBpe> model;

  /// A piece of text without added tokens.
  void encode_plain(std::string_view text, bool at_start, std::vector<TokenId>& out) const {
    if (const auto* byte_level = std::get_if<ByteLevelBpe>(&model)) {
      return byte_level->encode(text, out);
    }
    const TokenizerSpec& spec = vocabulary->spec;
    const bool space_prefix = spec.add_space_prefix && (at_start || !spec.space_prefix_once);
    std::get<SentencePieceBpe>(model).encode(text, space_prefix, out);
  }

  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, ControlTokens control, bool at_start) const {
    std::vector<TokenId> out;
    std::size_t from = 0;
    std::size_t search = 0;
    while (const auto match = added.find(text, search)) {
      search = match->end;
      if (control == ControlTokens::as_text && vocabulary->type(match->token) == TokenType::control) {
        continue;
      }
      encode_plain(text.substr(from, match->begin - from), at_start && from == 0, out);
      out.push_back(match->token);
      from = match->end;
    }
    encode_plain(text.substr(from), at_start && from == 0, out);
    return out;
  }
};

tl::expected<Tokenizer, LoadError> Tokenizer::build(TokenizerSpec spec, const std::string& file) {
  auto vocabulary = Vocabulary::build(std::move(spec), file);
  if (!vocabulary) {
    return tl::make_unexpected(std::move(vocabulary.error()));
  }
  const Vocabulary& words = **vocabulary;
  AddedTokens added;
  for (TokenId id = 0; id < words.size(); ++id) {
    if (words.type(id) == TokenType::control || words.type(id) == TokenType::user_defined) {
      added.add(words.spec.tokens[static_cast<std::size_t>(id)], id);
    }
  }
  added.finish();
  if (words.spec.kind == TokenizerSpec::Kind::sentencepiece_bpe) {
    SentencePieceBpe model(words);
    return Tokenizer(std::unique_ptr<Impl>(new Impl{std::move(*vocabulary), std::move(added), std::move(model)}));
  }
  auto model = ByteLevelBpe::build(words, file);
  if (!model) {
    return tl::make_unexpected(std::move(model.error()));
  }
  return Tokenizer(std::unique_ptr<Impl>(new Impl{std::move(*vocabulary), std::move(added), std::move(*model)}));
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, ControlTokens control) const {
  return impl_->encode(text, control, true);
}

std::vector<TokenId> Tokenizer::encode_after_control(std::string_view text) const {
  return impl_->encode(text, ControlTokens::as_text, false);
}

std::string Tokenizer::decode(std::span<const TokenId> tokens, bool show_control) const {
  std::string text;
  bool may_hold_prefix = spec().kind == TokenizerSpec::Kind::sentencepiece_bpe && spec().add_space_prefix;
  for (const TokenId token : tokens) {
    if (is_control(token)) {
      may_hold_prefix = may_hold_prefix && !spec().space_prefix_once;
      text += show_control ? impl_->vocabulary->bytes_of(token) : std::string_view();
      continue;
    }
    std::string_view bytes = token_bytes(token);
    if (may_hold_prefix && bytes.starts_with(' ')) {
      bytes.remove_prefix(1);
    }
    may_hold_prefix = false;
    text += bytes;
  }
  return text;
}

std::string_view Tokenizer::token_bytes(TokenId token) const {
  if (token < 0 || token >= size() || is_control(token)) {
    return {};
  }
  return impl_->vocabulary->bytes_of(token);
}

std::optional<TokenId> Tokenizer::find(std::string_view spelling) const {
  return impl_->vocabulary->spellings.find(spelling);
}

std::int64_t Tokenizer::size() const {
  return impl_->vocabulary->size();
}

bool Tokenizer::is_control(TokenId token) const {
  return token >= 0 && token < size() && impl_->vocabulary->type(token) == TokenType::control;
}

const TokenizerSpec& Tokenizer::spec() const {
  return impl_->vocabulary->spec;
}

}  // namespace fixpoint::engine
