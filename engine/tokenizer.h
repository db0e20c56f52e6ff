#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/load_error.h"
#include "engine/tokenizer_spec.h"

namespace fixpoint::engine {

/// Text <-> token ids, equal to the original tokenizer's ids. Immutable; any number of threads may use it.
///
/// Added tokens are taken out of the text first, the leftmost and of those the longest: user-defined ones always, control
/// tokens only with ControlTokens::parse. What lies between is tokenised piece by piece. With ControlTokens::as_text no
/// text yields a control token, however it is spelt; bos, eos, eot and the stop tokens count as control tokens whatever
/// type the file gives them.
///
/// SentencePiece: where add_space_prefix is set, a piece at the start of the text or after an added token is read as if a
/// space stood before it, unless space_prefix_once keeps that to the start. decode() takes the first one off again.
class Tokenizer {
 public:
  /// Whether text that spells a control token ("<|im_end|>") becomes that token. Text from a user never does.
  enum class ControlTokens : bool { as_text, parse };

  /// Checks the spec (ids in range, duplicate tokens, merges that name unknown tokens); `file` is for messages.
  [[nodiscard]] static tl::expected<Tokenizer, LoadError> build(TokenizerSpec spec, const std::string& file);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Ids of `text`, without BOS. O(n log n) in the text, whatever it holds; invalid UTF-8 goes through byte by byte.
  /// Precondition: text.size() < 2^31.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, ControlTokens control) const;
  /// Like encode(text, as_text), for a text that follows a control token in the same prompt.
  [[nodiscard]] std::vector<TokenId> encode_after_control(std::string_view text) const;
  /// Bytes of the tokens, joined: the text that encode() was given, if it was UTF-8 (and NFC, where the spec normalises).
  /// Control tokens give nothing unless `show_control`.
  [[nodiscard]] std::string decode(std::span<const TokenId> tokens, bool show_control = false) const;
  /// The bytes one token adds to a text (empty for control tokens and ids out of range).
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
