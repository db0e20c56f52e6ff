#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/detail/token_index.h"
#include "engine/load_error.h"
#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// A checked TokenizerSpec with what encoding and decoding look up. Does not move: the indices point into it.
struct Vocabulary {
  TokenizerSpec spec;
  std::vector<TokenType> types;    ///< as in the spec, but tokens that end or begin a text are control tokens
  std::vector<std::string> bytes;  ///< what each token adds to a text; the spelling for control tokens
  TokenIndex spellings;            ///< every token as the file spells it, but unused ones
  TokenIndex words;                ///< normal tokens by their bytes: what plain text may become

  [[nodiscard]] static tl::expected<std::unique_ptr<const Vocabulary>, LoadError> build(TokenizerSpec spec,
                                                                                        const std::string& file);

  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  [[nodiscard]] TokenId size() const { return static_cast<TokenId>(bytes.size()); }
  [[nodiscard]] TokenType type(TokenId token) const { return types[static_cast<std::size_t>(token)]; }
  /// The unknown token, unless it is a control token: text must not become one.
  [[nodiscard]] std::optional<TokenId> unknown() const {
    return spec.unk && type(*spec.unk) != TokenType::control ? spec.unk : std::nullopt;
  }
  [[nodiscard]] const std::string& bytes_of(TokenId token) const { return bytes[static_cast<std::size_t>(token)]; }

 private:
  explicit Vocabulary(TokenizerSpec spec);
};

}  // namespace fixpoint::engine::detail
