#include "sandbox/detail/check/canonical.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace fixpoint::sandbox::detail {
namespace {

using Kind = Value::Kind;

std::string exact_decimal(double value) {
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // 1074 binary places are 1074 decimal ones; most doubles need few, so try the short form first.
  char text[1500];
  const bool whole = value == std::floor(value);
  const int length = std::snprintf(text, sizeof text, whole ? "%.0f" : "%.1074f", value);
  return *canonical_decimal(std::string_view(text, static_cast<std::size_t>(length)));
}

}  // namespace

std::optional<std::string> canonical_decimal(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    negative = text.front() == '-';
    text.remove_prefix(1);
  }
  long exponent = 0;
  if (const auto at = text.find_first_of("eE"); at != text.npos) {
    const char* first = text.data() + at + 1;
    const char* last = text.data() + text.size();
    if (first != last && *first == '+') ++first;
    const auto [end, status] = std::from_chars(first, last, exponent);
    if (status != std::errc{} || end != last || std::labs(exponent) > 5000) return std::nullopt;
    text = text.substr(0, at);
  }
  std::string digits;
  const auto point = text.find('.');
  digits += text.substr(0, point);
  const long before = static_cast<long>(digits.size());
  if (point != text.npos) digits += text.substr(point + 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) return std::nullopt;
  long place = before + exponent;  // how many digits stand before the point
  const auto first = digits.find_first_not_of('0');
  if (first == digits.npos) return "0";
  digits.erase(0, first);
  place -= static_cast<long>(first);
  digits.erase(digits.find_last_not_of('0') + 1);
  std::string out = negative ? "-" : "";
  const long count = static_cast<long>(digits.size());
  if (place <= 0) return out + "0." + std::string(static_cast<std::size_t>(-place), '0') + digits;
  if (place >= count) return out + digits + std::string(static_cast<std::size_t>(place - count), '0');
  return out + digits.substr(0, static_cast<std::size_t>(place)) + '.' + digits.substr(static_cast<std::size_t>(place));
}

std::optional<std::string> canonical_number(const Value& value) {
  switch (value.kind) {
    case Kind::boolean: return value.boolean ? "1" : "0";
    case Kind::integer: return value.text;
    case Kind::real: return std::isnan(value.real) ? std::nullopt : std::optional(exact_decimal(value.real));
    case Kind::complex: {
      if (std::isnan(value.real) || std::isnan(value.imaginary)) return std::nullopt;
      std::string text = exact_decimal(value.real);
      if (value.imaginary != 0) text += '|' + exact_decimal(value.imaginary);
      return text;
    }
    case Kind::decimal: {
      auto plain = canonical_decimal(value.text);
      if (plain) return plain;
      if (value.text.find("Inf") != value.text.npos) return value.text.starts_with('-') ? "-inf" : "inf";
      if (value.text.find("NaN") != value.text.npos) return std::nullopt;
      return "D" + value.text;
    }
    default: return std::nullopt;
  }
}

std::string canonical_key(const Value& value) {
  switch (value.kind) {
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::complex:
    case Kind::decimal: {
      const auto number = canonical_number(value);
      return number ? 'n' + *number + ';' : "nan@" + std::to_string(reinterpret_cast<std::uintptr_t>(&value)) + ';';
    }
    case Kind::set:
    case Kind::frozenset:
    case Kind::dict: {
      const std::size_t stride = value.kind == Kind::dict ? 2 : 1;
      std::string out(stride == 2 ? "d{" : "S{");
      for (const auto& member : canonical_members(value.items, stride)) {
        out += member.key;
        if (stride == 2 && member.index + 1 < value.items.size()) out += '=' + canonical_key(value.items[member.index + 1]);
      }
      return out + '}';
    }
    case Kind::list:
    case Kind::tuple: {
      std::string out(value.kind == Kind::list ? "l[" : "t[");
      for (const Value& item : value.items) out += canonical_key(item);
      return out + ']';
    }
    case Kind::named: {
      const bool plain = value.text == "Counter" || value.text == "OrderedDict" || value.text == "defaultdict" ||
                         value.text == "namedtuple" || value.text.starts_with("subclass:");
      const std::string inner = value.items.empty() ? "" : canonical_key(value.items.front());
      return plain ? inner : 'N' + std::to_string(value.text.size()) + ':' + value.text + '(' + inner + ')';
    }
    default: return encode(value);  // none, undefined, strings, bytes: their wire form is one text for each value
  }
}

std::vector<CanonicalMember> canonical_members(const std::vector<Value>& items, std::size_t stride) {
  std::vector<CanonicalMember> out;
  out.reserve(items.size() / stride);
  for (std::size_t i = 0; i + stride <= items.size(); i += stride) out.push_back({canonical_key(items[i]), i});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return out;
}

}  // namespace fixpoint::sandbox::detail
