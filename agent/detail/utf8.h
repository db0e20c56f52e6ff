#pragma once

#include <string>
#include <string_view>

namespace fixpoint::agent::detail {

/// `text` with every byte that is not part of a well-formed character replaced by U+FFFD. NUL is kept.
[[nodiscard]] std::string to_valid_utf8(std::string_view text);
[[nodiscard]] bool is_valid_utf8(std::string_view text);

/// The largest length <= `bytes` at which `text` can be cut without splitting a character.
[[nodiscard]] std::size_t floor_character(std::string_view text, std::size_t bytes);
/// The smallest offset >= `offset` at which a character begins.
[[nodiscard]] std::size_t ceil_character(std::string_view text, std::size_t offset);

/// Without white space at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);

/// A letter, digit or "_" of ASCII.
[[nodiscard]] bool is_identifier_character(char c);
/// Whether `word` stands in `text` with no identifier character on either side.
[[nodiscard]] bool has_word(std::string_view text, std::string_view word);

}  // namespace fixpoint::agent::detail
