#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/load_error.h"
#include "engine/tokenizer_spec.h"

namespace fixpoint::engine {

/// Text <-> token ids, equal to the original tokenizer's ids. Immutable; any number of threads may use it.
class Tokenizer {
 public:
  /// Whether text that spells a control token ("<|im_end|>") becomes that token. Text from a user never does.
  enum class ControlTokens : bool { as_text, parse };

  /// Checks the spec (ids in range, duplicate tokens, merges that name unknown tokens); `file` is for messages.
  [[nodiscard]] static tl::expected<Tokenizer, LoadError> build(TokenizerSpec spec, const std::string& file);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Ids of `text`, without BOS. Linear-ish in the text, whatever it holds; invalid UTF-8 goes through byte by byte.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, ControlTokens control) const;
  /// Bytes of the tokens, joined. Control tokens give nothing unless `show_control`.
  [[nodiscard]] std::string decode(std::span<const TokenId> tokens, bool show_control = false) const;
  /// The bytes one token adds to a text (empty for control tokens).
  [[nodiscard]] std::string_view token_bytes(TokenId token) const;
  /// The token that is spelt exactly so in the vocabulary, control tokens included.
  [[nodiscard]] std::optional<TokenId> find(std::string_view spelling) const;

  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] bool is_control(TokenId token) const;
  [[nodiscard]] const TokenizerSpec& spec() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::engine
