// Python literals and JSON, as values.
#include "sandbox/detail/check/literal_parser.h"

#include <charconv>
#include <cmath>
#include <cctype>
#include <cstdlib>
#include <string>
#include <unordered_map>

namespace fixpoint::sandbox::detail {
namespace {

using Kind = Value::Kind;

// As Python builds them: the first place of a key, its last value; a set has each member once.
void remove_duplicates(Value& value) {
  const std::size_t stride = value.kind == Kind::dict ? 2 : 1;
  std::unordered_map<std::string, std::size_t> places;
  std::vector<Value> kept;
  for (std::size_t i = 0; i + stride <= value.items.size(); i += stride) {
    const auto [place, fresh] = places.try_emplace(canonical_key(value.items[i]), kept.size());
    if (fresh) {
      for (std::size_t k = 0; k < stride; ++k) kept.push_back(std::move(value.items[i + k]));
    } else if (stride == 2) {
      kept[place->second + 1] = std::move(value.items[i + 1]);
    }
  }
  value.items = std::move(kept);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (static_cast<unsigned char>(c) & 0x80); }

}  // namespace

void append_utf8(std::uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

bool LiteralParser::fail(const char* what) {
  if (error_.what.empty()) error_ = {at_, what};
  return false;
}

void LiteralParser::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
      at_ += 2;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

bool LiteralParser::take(char c) {
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool LiteralParser::looking_at(char c) {
  skip_blanks();
  return at_ < text_.size() && text_[at_] == c;
}

std::string_view LiteralParser::word() {
  skip_blanks();
  const auto first = at_;
  while (at_ < text_.size() && (is_letter(text_[at_]) || (at_ > first && is_digit(text_[at_])))) ++at_;
  return text_.substr(first, at_ - first);
}

bool LiteralParser::at_end() {
  skip_blanks();
  return at_ >= text_.size();
}

bool LiteralParser::value(Value& out, std::size_t depth) {
  if (!term(out, depth)) return false;
  // The one sum among literals: a complex number.
  while (true) {
    const auto end = at_;
    if (!goes_on(end, depth) || (text_[at_] != '+' && text_[at_] != '-')) {
      at_ = end;
      return true;
    }
    const char sign = text_[at_++];
    Value right;
    if (!term(right, depth)) return false;
    if (right.kind != Kind::complex || (out.kind != Kind::integer && out.kind != Kind::real)) return fail("not a literal: arithmetic");
    const double base = out.kind == Kind::integer ? std::strtod(out.text.c_str(), nullptr) : out.real;
    out = Value{};
    out.kind = Kind::complex;
    out.real = base + (sign == '+' ? right.real : -right.real);
    out.imaginary = sign == '+' ? right.imaginary : -right.imaginary;
  }
}

// Moves to the next visible character; outside of brackets a line's end ends the value.
bool LiteralParser::goes_on(std::size_t end, std::size_t depth) {
  skip_blanks();
  return at_ < text_.size() && (depth > 0 || text_.substr(end, at_ - end).find('\n') == text_.npos);
}

bool LiteralParser::term(Value& out, std::size_t depth) {
  if (depth > max_value_depth) return fail("nested too deeply");
  if (++nodes_ > max_value_nodes) return fail("too many values");
  skip_blanks();
  if (at_ >= text_.size()) return fail("a value is missing");
  const char c = text_[at_];
  if (c == '-' || c == '+') return signed_number(out, depth);
  if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return number(out);
  if (c == '\'' || c == '"') return strings(out, false, false, depth);
  if (c == '[') return sequence(out, depth, ']', Kind::list);
  if (c == '(') return parenthesised(out, depth);
  if (c == '{') return braces(out, depth);
  if (is_letter(c)) return named(out, depth);
  return fail("not a literal");
}

bool LiteralParser::signed_number(Value& out, std::size_t depth) {
  const bool minus = text_[at_++] == '-';
  if (!term(out, depth + 1)) return false;
  if (out.kind == Kind::boolean) out = Value::of(out.boolean ? 1 : 0);
  if (out.kind != Kind::integer && out.kind != Kind::real && out.kind != Kind::complex) return fail("a sign before what is no number");
  if (!minus) return true;
  if (out.kind == Kind::integer) {
    if (out.text.starts_with('-')) {
      out.text.erase(0, 1);
    } else if (out.text != "0") {
      out.text.insert(0, 1, '-');
    }
  }
  out.real = -out.real;
  out.imaginary = -out.imaginary;
  return true;
}

bool LiteralParser::based_integer(Value& out) {
  const char base = text_[at_ + 1];
  at_ += 2;
  std::uint64_t number = 0;
  const unsigned shift = base == 'x' || base == 'X' ? 4 : base == 'o' || base == 'O' ? 3 : 1;
  bool any = false;
  for (; at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_'); ++at_) {
    if (text_[at_] == '_') continue;
    const char c = text_[at_];
    const int digit = is_digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : 99;
    if (digit >= (1 << shift)) return fail("bad digit");
    if (number >> (64 - shift)) return fail("number in base 2, 8 or 16 beyond 64 bits");
    number = number << shift | static_cast<unsigned>(digit);
    any = true;
  }
  out.kind = Kind::integer;
  out.text = std::to_string(number);
  return any || fail("bad number");
}

bool LiteralParser::number(Value& out) {
  if (text_[at_] == '0' && at_ + 1 < text_.size() && std::string_view("xXoObB").find(text_[at_ + 1]) != std::string_view::npos) {
    return based_integer(out);
  }
  std::string digits;
  bool real = false;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (is_digit(c)) {
      digits += c;
    } else if (c == '_') {
      continue;
    } else if (c == '.' || c == 'e' || c == 'E') {
      real = true;
      digits += c;
      if (c != '.' && at_ + 1 < text_.size() && (text_[at_ + 1] == '+' || text_[at_ + 1] == '-')) digits += text_[++at_];
    } else {
      break;
    }
  }
  const bool imaginary = at_ < text_.size() && (text_[at_] == 'j' || text_[at_] == 'J');
  if (real || imaginary) {
    char* end = nullptr;
    const double parsed = std::strtod(digits.c_str(), &end);
    if (*end != '\0') return fail("bad number");
    out.kind = imaginary ? Kind::complex : Kind::real;
    (imaginary ? out.imaginary : out.real) = parsed;
    at_ += imaginary;
  } else {
    const auto first = digits.find_first_not_of('0');
    if (first != 0 && digits.size() > 1 && first != digits.npos) return fail("integer with a leading zero");
    out.kind = Kind::integer;
    out.text = first == digits.npos ? "0" : digits;
  }
  if (at_ < text_.size() && is_letter(text_[at_])) return fail("bad number");
  return true;
}

bool LiteralParser::escape(std::string& out, bool bytes) {
  const char c = text_[at_++];
  constexpr std::string_view plain = "\\'\"abfnrtv";
  constexpr std::string_view meaning = "\\'\"\a\b\f\n\r\t\v";
  if (const auto i = plain.find(c); i != plain.npos) {
    out += meaning[i];
    return true;
  }
  if (c == '\n') return true;
  if (c >= '0' && c <= '7') {
    unsigned code = static_cast<unsigned>(c - '0');
    for (int i = 0; i < 2 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i) code = code * 8 + static_cast<unsigned>(text_[at_++] - '0');
    bytes ? void(out += static_cast<char>(code)) : append_utf8(code, out);
    return true;
  }
  const std::size_t digits = c == 'x' ? 2 : c == 'u' && !bytes ? 4 : c == 'U' && !bytes ? 8 : 0;
  if (c == 'N' && !bytes) return fail("named characters are not read");
  if (digits == 0) {
    out += '\\';
    out += c;
    return true;
  }
  std::uint32_t code = 0;
  if (at_ + digits > text_.size()) return fail("short escape");
  const auto [end, status] = std::from_chars(text_.data() + at_, text_.data() + at_ + digits, code, 16);
  if (status != std::errc{} || end != text_.data() + at_ + digits || code > 0x10FFFF) return fail("bad escape");
  at_ += digits;
  bytes ? void(out += static_cast<char>(code)) : append_utf8(code, out);
  return true;
}

bool LiteralParser::one_string(std::string& out, bool bytes, bool raw) {
  const char quote = text_[at_];
  const bool triple = text_.substr(at_, 3) == std::string(3, quote);
  at_ += triple ? 3 : 1;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (triple ? text_.substr(at_, 3) == std::string(3, quote) : c == quote) {
      at_ += triple ? 3 : 1;
      return true;
    }
    if (c == '\n' && !triple) return fail("line ends inside a string");
    if (bytes && (static_cast<unsigned char>(c) & 0x80)) return fail("bytes beyond ASCII");
    ++at_;
    if (c != '\\') {
      out += c;
    } else if (at_ >= text_.size()) {
      break;
    } else if (raw) {
      out += '\\';
      out += text_[at_++];
    } else if (!escape(out, bytes)) {
      return false;
    }
  }
  return fail("string without an end");
}

bool LiteralParser::strings(Value& out, bool bytes, bool raw, std::size_t depth) {
  out.kind = bytes ? Kind::bytes : Kind::string;
  if (!one_string(out.text, bytes, raw)) return false;
  // Strings side by side are one string.
  while (true) {
    const auto end = at_;
    if (!goes_on(end, depth)) {
      at_ = end;
      return true;
    }
    if (text_[at_] == '\'' || text_[at_] == '"') {
      if (bytes) return fail("bytes and text side by side");
      if (!one_string(out.text, false, false)) return false;
      continue;
    }
    const auto prefix = word();
    const bool quoted = !prefix.empty() && at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"');
    if (!quoted) {
      at_ = end;
      return true;
    }
    const bool next_bytes = prefix.find_first_of("bB") != prefix.npos;
    if (prefix.find_first_not_of("rRbBuU") != prefix.npos || next_bytes != bytes) return fail("not a literal: string prefix");
    if (!one_string(out.text, bytes, prefix.find_first_of("rR") != prefix.npos)) return false;
  }
}

bool LiteralParser::sequence(Value& out, std::size_t depth, char close, Kind kind) {
  out.kind = kind;
  ++at_;
  while (!take(close)) {
    if (!value(out.items.emplace_back(), depth + 1)) return false;
    if (take(',')) continue;
    if (take(close)) return true;
    return fail("',' or the end of a list is missing");
  }
  return true;
}

bool LiteralParser::parenthesised(Value& out, std::size_t depth) {
  const auto open = at_++;
  if (take(')')) {
    out.kind = Kind::tuple;
    return true;
  }
  Value first;
  if (!value(first, depth + 1)) return false;
  if (take(')')) {
    out = std::move(first);
    return true;
  }
  at_ = open;
  return sequence(out, depth, ')', Kind::tuple);
}

bool LiteralParser::braces(Value& out, std::size_t depth) {
  ++at_;
  out.kind = Kind::dict;
  if (take('}')) return true;
  bool first = true;
  do {
    if (!first && looking_at('}')) break;
    if (!value(out.items.emplace_back(), depth + 1)) return false;
    if (first) out.kind = looking_at(':') ? Kind::dict : Kind::set;
    first = false;
    if (out.kind == Kind::dict && (!take(':') || !value(out.items.emplace_back(), depth + 1))) return fail("':' is missing");
  } while (take(','));
  if (!take('}')) return fail("',' or '}' is missing");
  remove_duplicates(out);
  return true;
}

bool LiteralParser::named(Value& out, std::size_t depth) {
  const auto first = at_;
  const auto name = word();
  if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"') && name.find_first_not_of("rRbBuU") == name.npos) {
    return strings(out, name.find_first_of("bB") != name.npos, name.find_first_of("rR") != name.npos, depth);
  }
  if (name == (json_ ? "null" : "None")) return true;
  if (name == (json_ ? "true" : "True") || name == (json_ ? "false" : "False")) {
    out = Value::of(name == "True" || name == "true");
    return true;
  }
  if (json_ && (name == "NaN" || name == "Infinity")) {
    out = Value::of(name == "NaN" ? std::nan("") : HUGE_VAL);
    return true;
  }
  if (!json_ && (name == "set" || name == "frozenset" || name == "float" || name == "Decimal" || name == "tuple" || name == "list")) {
    return constructed(name, out, depth);
  }
  at_ = first;
  return fail("not a literal: a name");
}

// set([1, 2]), float('inf') and their like.
bool LiteralParser::constructed(std::string_view name, Value& out, std::size_t depth) {
  if (!take('(')) return fail("not a literal: a name");
  Value inner;
  bool empty = true;
  if (!looking_at(')')) {
    empty = false;
    if (!value(inner, depth + 1)) return false;
  }
  if (!take(')')) return fail("')' is missing");
  const bool text = inner.kind == Kind::string;
  if (name == "float" && !empty && text) {
    char* end = nullptr;
    out = Value::of(std::strtod(inner.text.c_str(), &end));
    return (*end == '\0' && !inner.text.empty()) || fail("float of what is no number");
  }
  if (name == "Decimal" && !empty && (text || inner.kind == Kind::integer)) {
    out.kind = Kind::decimal;
    out.text = inner.text;
    return canonical(out.text) || fail("Decimal of what is no number");
  }
  const bool items = inner.kind == Kind::list || inner.kind == Kind::tuple || inner.kind == Kind::set;
  if (name == "float" || name == "Decimal" || (!empty && !items)) return fail("not a literal: a call");
  out.kind = name == "set" ? Kind::set : name == "frozenset" ? Kind::frozenset : name == "tuple" ? Kind::tuple : Kind::list;
  if (inner.kind == Kind::set && (out.kind == Kind::tuple || out.kind == Kind::list)) return fail("not a literal: order of a set");
  out.items = std::move(inner.items);
  if (out.kind == Kind::set || out.kind == Kind::frozenset) remove_duplicates(out);
  return true;
}

}  // namespace fixpoint::sandbox::detail

namespace fixpoint::sandbox {

tl::expected<Value, ValueError> parse_python_literal(std::string_view text) {
  detail::LiteralParser parser(text, false);
  Value out;
  if (parser.value(out, 0) && (parser.at_end() || parser.fail("text after the value"))) return out;
  return tl::unexpected(parser.error());
}

tl::expected<Value, ValueError> parse_json_value(std::string_view text) {
  detail::LiteralParser parser(text, true);
  Value out;
  if (parser.value(out, 0) && (parser.at_end() || parser.fail("text after the value"))) return out;
  return tl::unexpected(parser.error());
}

}  // namespace fixpoint::sandbox
