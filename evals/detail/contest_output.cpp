#include "evals/detail/contest_output.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace fixpoint::evals::detail {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

std::string_view strip(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> stripped_lines(std::string_view text) {
  std::vector<std::string_view> out;
  text = strip(text);
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    out.push_back(strip(text.substr(start, end - start)));
    start = end + 1;
  }
  return out;
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos; at = line.find_first_not_of(kBlanks, at)) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    out.push_back(line.substr(at, end - at));
    at = end;
  }
  return out;
}

/// A value without its spelling: digits without leading and trailing zeros, times a power of ten.
struct Decimal {
  enum class Kind { finite, infinite, nan } kind = Kind::finite;
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

/// "e-12" → -12; false where it is no exponent. Beyond ten digits it is cut, which keeps different values different enough.
bool read_exponent(std::string_view text, std::int64_t& out) {
  text.remove_prefix(1);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text.size() > 10 || text.find_first_not_of("0123456789") != std::string_view::npos) return false;
  for (const char c : text) out = out * 10 + (c - '0');
  if (negative) out = -out;
  return true;
}

std::optional<Decimal> parse_decimal(std::string_view spelled) {
  std::string text = lower(spelled);
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  Decimal out;
  std::string_view rest = text;
  out.negative = rest.starts_with('-');
  if (out.negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "inf" || rest == "infinity") return out.kind = Decimal::Kind::infinite, out;
  if (rest == "nan" || rest == "snan") return out.kind = Decimal::Kind::nan, out;
  const std::size_t e = std::min(rest.find('e'), rest.size());
  if (e < rest.size() && !read_exponent(rest.substr(e), out.exponent)) return std::nullopt;
  bool point = false;
  bool any = false;
  for (const char c : rest.substr(0, e)) {
    if (c == '.') {
      if (point) return std::nullopt;
      point = true;
    } else if (c >= '0' && c <= '9') {
      any = true;
      out.digits += c;
      out.exponent -= point ? 1 : 0;
    } else {
      return std::nullopt;
    }
  }
  if (!any) return std::nullopt;
  out.digits.erase(0, std::min(out.digits.find_first_not_of('0'), out.digits.size()));
  while (out.digits.ends_with('0')) {
    out.digits.pop_back();
    ++out.exponent;
  }
  if (out.digits.empty()) out = Decimal{};
  return out;
}

bool same_lines(std::string_view got, std::string_view expected) {
  if (got == expected) return true;
  const auto left = words(got);
  const auto right = words(expected);
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), same_decimal);
}

std::string shown(std::string_view line) { return std::string(line.substr(0, 300)); }

}  // namespace

bool same_decimal(std::string_view a, std::string_view b) {
  const auto left = parse_decimal(a);
  const auto right = parse_decimal(b);
  if (!left || !right || left->kind != right->kind || left->kind == Decimal::Kind::nan) return false;
  return left->negative == right->negative && left->digits == right->digits && left->exponent == right->exponent;
}

std::string output_difference(std::string_view got, std::string_view expected) {
  const auto left = stripped_lines(got);
  const auto right = stripped_lines(expected);
  if (left.size() != right.size()) {
    return "printed " + std::to_string(left.size()) + " lines, not " + std::to_string(right.size());
  }
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!same_lines(left[i], right[i])) return "line " + std::to_string(i + 1) + ": '" + shown(left[i]) + "' is not '" + shown(right[i]) + "'";
  }
  return {};
}

}  // namespace fixpoint::evals::detail
