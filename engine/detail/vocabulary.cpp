#include "engine/detail/vocabulary.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "engine/detail/byte_alphabet.h"
#include "engine/utf8.h"

namespace fixpoint::engine::detail {
namespace {

// Preparing a SentencePiece vocabulary costs the square of its pieces' lengths; real ones stay under 100 bytes.
constexpr std::size_t kLongestPiece = 1024;

std::string replace_all(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  std::size_t from = 0;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, from)) {
    out.append(text, from, at - from).append(with);
    from = at + what.size();
  }
  return out.append(text, from);
}

/// The byte that "<0x1F>" names.
std::optional<char> byte_token(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') {
    return std::nullopt;
  }
  unsigned value = 0;
  const auto [end, error] = std::from_chars(spelling.data() + 3, spelling.data() + 5, value, 16);
  if (error != std::errc{} || end != spelling.data() + 5) {
    return std::nullopt;
  }
  return static_cast<char>(value);
}

std::string text_of(const TokenizerSpec& spec, TokenType type, const std::string& spelling) {
  const bool byte_level = spec.kind == TokenizerSpec::Kind::byte_level_bpe;
  switch (type) {
    case TokenType::control:
    case TokenType::user_defined:
      return spelling;
    case TokenType::unknown:
      return std::string(kReplacement);
    case TokenType::byte:
      if (const auto byte = byte_token(spelling)) {
        return {*byte};
      }
      [[fallthrough]];
    case TokenType::normal:
    case TokenType::unused:
      break;
  }
  return byte_level ? bytes_of_spelling(spelling) : replace_all(spelling, kSpaceMark, " ");
}

using Result = tl::expected<void, LoadError>;

Result check(const TokenizerSpec& spec, const std::string& file) {
  const auto fail = [&](LoadError::Kind kind, std::string where, std::string detail) {
    return tl::make_unexpected(LoadError{kind, file, std::move(where), std::move(detail)});
  };
  const std::size_t size = spec.tokens.size();
  if (size == 0) {
    return fail(LoadError::Kind::missing, "tokenizer tokens", "the vocabulary is empty");
  }
  if (size > INT32_MAX / 2) {
    return fail(LoadError::Kind::unsupported, "tokenizer tokens", std::to_string(size) + " tokens are too many");
  }
  const auto same_size = [&](std::size_t other, const char* what) -> Result {
    if (other != size) {
      return fail(LoadError::Kind::inconsistent, std::string("tokenizer ") + what,
                  std::to_string(other) + " entries for " + std::to_string(size) + " tokens");
    }
    return {};
  };
  if (auto ok = same_size(spec.types.size(), "token types"); !ok) {
    return ok;
  }
  if (spec.kind == TokenizerSpec::Kind::sentencepiece_bpe) {
    if (auto ok = same_size(spec.scores.size(), "scores"); !ok) {
      return ok;
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (std::isnan(spec.scores[i])) {
        return fail(LoadError::Kind::malformed, "tokenizer score " + std::to_string(i), "is not a number");
      }
      if (spec.tokens[i].size() > kLongestPiece) {
        return fail(LoadError::Kind::unsupported, "tokenizer token " + std::to_string(i),
                    "is longer than " + std::to_string(kLongestPiece) + " bytes");
      }
    }
  }
  const auto in_range = [&](std::optional<TokenId> id, const char* what) -> Result {
    if (id && (*id < 0 || static_cast<std::size_t>(*id) >= size)) {
      return fail(LoadError::Kind::inconsistent, std::string("tokenizer ") + what + " token",
                  "id " + std::to_string(*id) + " is outside the vocabulary of " + std::to_string(size) + " tokens");
    }
    return {};
  };
  for (const auto& [id, what] : {std::pair{spec.bos, "bos"}, {spec.eos, "eos"}, {spec.eot, "eot"}, {spec.unk, "unknown"}}) {
    if (auto ok = in_range(id, what); !ok) {
      return ok;
    }
  }
  for (const TokenId id : spec.stop_tokens) {
    if (auto ok = in_range(id, "stop"); !ok) {
      return ok;
    }
  }
  return {};
}

}  // namespace

// Files are not always honest about the tokens that begin and end a text; whoever may write text must not be able to
// write those.
Vocabulary::Vocabulary(TokenizerSpec given)
    : spec(std::move(given)), types(spec.types), spellings(spec.tokens), words(bytes) {
  const auto make_control = [&](std::optional<TokenId> id) {
    if (id) {
      types[static_cast<std::size_t>(*id)] = TokenType::control;
    }
  };
  make_control(spec.bos);
  make_control(spec.eos);
  make_control(spec.eot);
  for (const TokenId id : spec.stop_tokens) {
    make_control(id);
  }
  bytes.reserve(spec.tokens.size());
  for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
    bytes.push_back(text_of(spec, types[i], spec.tokens[i]));
  }
  words = TokenIndex(bytes);
}

tl::expected<std::unique_ptr<const Vocabulary>, LoadError> Vocabulary::build(TokenizerSpec spec, const std::string& file) {
  if (const auto ok = check(spec, file); !ok) {
    return tl::make_unexpected(ok.error());
  }
  std::unique_ptr<Vocabulary> vocabulary(new Vocabulary(std::move(spec)));
  for (TokenId id = 0; id < vocabulary->size(); ++id) {
    const TokenType type = vocabulary->type(id);
    const std::string& spelling = vocabulary->spec.tokens[static_cast<std::size_t>(id)];
    if (type == TokenType::unused || spelling.empty()) {
      continue;
    }
    if (!vocabulary->spellings.insert(id)) {
      return tl::make_unexpected(LoadError{LoadError::Kind::inconsistent, file, "tokenizer token " + std::to_string(id),
                                           "'" + spelling + "' is in the vocabulary twice, first as " +
                                               std::to_string(*vocabulary->spellings.find(spelling))});
    }
    if (type == TokenType::normal) {
      // "Ġ" and a literal space would be the same bytes: the first one counts.
      static_cast<void>(vocabulary->words.insert(id));
    }
  }
  return std::unique_ptr<const Vocabulary>(std::move(vocabulary));
}

}  // namespace fixpoint::engine::detail
