#include "agent/detail/utf8.h"

#include <cctype>

#include <algorithm>
#include <cstdint>

namespace fixpoint::agent::detail {
namespace {

/// Length of the well-formed character at `at` (RFC 3629: no overlong forms, no surrogates), or 0.
std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(at);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || at + length > text.size()) return 0;
  const std::uint8_t second = byte(at + 1);
  const std::uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const std::uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (second < low || second > high) return 0;
  for (std::size_t i = at + 2; i < at + length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

bool is_continuation(char c) { return (static_cast<std::uint8_t>(c) & 0xC0) == 0x80; }

}  // namespace

bool is_valid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text, i);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      ++i;
    } else {
      out.append(text, i, length);
      i += length;
    }
  }
  return out;
}

std::size_t floor_character(std::string_view text, std::size_t bytes) {
  if (bytes >= text.size()) return text.size();
  std::size_t at = bytes;
  while (at > 0 && bytes - at < 3 && is_continuation(text[at])) --at;
  return at;
}

std::size_t ceil_character(std::string_view text, std::size_t offset) {
  std::size_t at = std::min(offset, text.size());
  while (at < text.size() && at - offset < 3 && is_continuation(text[at])) ++at;
  return at;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\f\v";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_identifier_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool has_word(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool before = at > 0 && is_identifier_character(text[at - 1]);
    const std::size_t end = at + word.size();
    const bool after = end < text.size() && is_identifier_character(text[end]);
    if (!before && !after) return true;
  }
  return false;
}

}  // namespace fixpoint::agent::detail
