// Printed answers compared with expected ones.
#include "sandbox/detail/check/canonical.h"
#include "sandbox/equality.h"

#include <cmath>
#include <cstdlib>

namespace fixpoint::sandbox {
namespace {

using detail::canonical_decimal;

constexpr std::string_view blanks = " \t\r\f\v";
constexpr std::string_view white = " \t\r\n\f\v";
constexpr std::size_t shown_bytes = 300;

std::string_view without_trailing(std::string_view text, std::string_view set) {
  const auto last = text.find_last_not_of(set);
  return last == text.npos ? std::string_view{} : text.substr(0, last + 1);
}

std::string shown(std::string_view text) {
  if (text.size() <= shown_bytes) return std::string(text);
  return std::string(text.substr(0, shown_bytes)) + "… (" + std::to_string(text.size() - shown_bytes) + " more bytes)";
}

struct Cursor {
  std::string_view text;
  std::size_t at = 0;
  bool done() const { return at > text.size(); }
  std::string_view next_line() {
    const auto end = text.find('\n', at);
    const auto line = text.substr(std::min(at, text.size()), end == text.npos ? text.npos : end - at);
    at = end == text.npos ? text.size() + 1 : end + 1;
    return line;
  }
};

bool tokens_equal(std::string_view got, std::string_view expected, const TextEquality& rules) {
  if (got == expected) return true;
  if (rules.mode != TextMode::numbers) return false;
  const auto left = canonical_decimal(got);
  const auto right = canonical_decimal(expected);
  if (left && right && *left == *right) return true;
  if (rules.absolute_tolerance == 0 && rules.relative_tolerance == 0) return false;
  const std::string a(got), b(expected);
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a);
  const double y = std::strtod(b.c_str(), &end_b);
  if (*end_a != '\0' || *end_b != '\0' || !std::isfinite(x) || !std::isfinite(y)) return false;
  return std::fabs(x - y) <= rules.absolute_tolerance + rules.relative_tolerance * std::fabs(y);
}

struct Token {
  std::string_view text;
  std::size_t line = 1;
};

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}
  std::optional<Token> next() {
    while (at_ < text_.size() && white.find(text_[at_]) != white.npos) line_ += text_[at_++] == '\n';
    if (at_ >= text_.size()) return std::nullopt;
    const auto end = std::min(text_.find_first_of(white, at_), text_.size());
    const Token token{text_.substr(at_, end - at_), line_};
    at_ = end;
    return token;
  }
  std::size_t line() const { return line_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

std::optional<TextDifference> token_difference(std::string_view got, std::string_view expected, const TextEquality& rules) {
  Tokens left(got), right(expected);
  while (true) {
    const auto a = left.next();
    const auto b = right.next();
    if (!a && !b) return std::nullopt;
    if (a && b && tokens_equal(a->text, b->text, rules)) continue;
    return TextDifference{a ? a->line : left.line(), a ? shown(a->text) : "(end of output)", b ? shown(b->text) : "(end of output)"};
  }
}

std::optional<TextDifference> line_difference(std::string_view got, std::string_view expected, bool exact) {
  if (!exact) {
    got = without_trailing(got, white);
    expected = without_trailing(expected, white);
  }
  if (got == expected) return std::nullopt;
  Cursor left{got}, right{expected};
  for (std::size_t line = 1;; ++line) {
    const bool more_left = !left.done(), more_right = !right.done();
    if (!more_left && !more_right) return std::nullopt;
    auto a = left.next_line();
    auto b = right.next_line();
    if (!exact) {
      a = without_trailing(a, blanks);
      b = without_trailing(b, blanks);
    }
    if (more_left == more_right && a == b) continue;
    return TextDifference{line, more_left ? shown(a) : "(end of output)", more_right ? shown(b) : "(end of output)"};
  }
}

}  // namespace

std::optional<TextDifference> difference(std::string_view got, std::string_view expected, const TextEquality& equality) {
  switch (equality.mode) {
    case TextMode::exact: return line_difference(got, expected, true);
    case TextMode::lines: return line_difference(got, expected, false);
    case TextMode::tokens:
    case TextMode::numbers: return token_difference(got, expected, equality);
  }
  return TextDifference{};
}

}  // namespace fixpoint::sandbox
