#include "sandbox/detail/check/marshal.h"

#include "sandbox/detail/check/value_reader.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>

namespace fixpoint::sandbox::detail {
namespace {

using Kind = Value::Kind;

constexpr std::uint32_t bits_of_digit = 15;  // a large integer's digits, whatever the interpreter's own are
constexpr std::size_t most_decimal_bits = 8192;  // beyond, an integer's text is hexadecimal (sandbox/value.h)

template <typename Number>
void append_little_endian(Number number, std::string& out) {
  for (std::size_t i = 0; i < sizeof number; ++i) out += static_cast<char>(number >> (8 * i) & 0xFF);
}

void append_size(std::size_t size, std::string& out) { append_little_endian(static_cast<std::uint32_t>(size), out); }

void append_real(double value, std::string& out) { append_little_endian(std::bit_cast<std::uint64_t>(value), out); }

bool append_integer(const std::string& text, std::string& out) {
  std::int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size()) return false;
  if (number == static_cast<std::int32_t>(number)) {
    out += 'i';
    append_little_endian(static_cast<std::uint32_t>(number), out);
    return true;
  }
  std::uint64_t left = number < 0 ? -static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  const auto digits = (static_cast<std::uint32_t>(std::bit_width(left)) + bits_of_digit - 1) / bits_of_digit;
  out += 'l';
  append_little_endian(number < 0 ? -digits : digits, out);
  for (; left != 0; left >>= bits_of_digit) append_little_endian(static_cast<std::uint16_t>(left & 0x7FFF), out);
  return true;
}

// A number of 15-bit digits, lowest first and the highest not zero, as the text of an integer.
std::string integer_text(const std::vector<std::uint16_t>& digits, bool negative) {
  if (digits.empty()) return "0";
  const std::size_t bits = (digits.size() - 1) * bits_of_digit + static_cast<std::size_t>(std::bit_width(digits.back()));
  std::string reversed;
  if (bits > most_decimal_bits) {
    for (std::size_t bit = 0; bit < bits; bit += 4) {
      const std::size_t at = bit / bits_of_digit;
      std::uint32_t two = digits[at];
      if (at + 1 < digits.size()) two |= static_cast<std::uint32_t>(digits[at + 1]) << bits_of_digit;
      reversed += "0123456789abcdef"[two >> bit % bits_of_digit & 0xF];
    }
    reversed += "x0";
  } else {
    constexpr int chunk_digits = 14;  // decimal ones a division: the remainder and 15 bits more fit into 64
    constexpr std::uint64_t chunk = 100'000'000'000'000;
    std::vector<std::uint16_t> rest = digits;
    while (!rest.empty()) {
      std::uint64_t remainder = 0;
      for (std::size_t i = rest.size(); i-- > 0;) {
        remainder = remainder << bits_of_digit | rest[i];
        rest[i] = static_cast<std::uint16_t>(remainder / chunk);
        remainder %= chunk;
      }
      while (!rest.empty() && rest.back() == 0) rest.pop_back();
      for (int i = 0; i < chunk_digits && (!rest.empty() || remainder != 0); ++i, remainder /= 10) reversed += static_cast<char>('0' + remainder % 10);
    }
  }
  if (negative) reversed += '-';
  return {reversed.rbegin(), reversed.rend()};
}

class MarshalReader : public ValueReader {
 public:
  using ValueReader::ValueReader;

  bool value(Value& out, std::size_t depth) {
    if (!begin_value(depth)) return false;
    switch (bytes_[at_++]) {
      case 'N': out.kind = Kind::none; return true;
      case 'T': out.kind = Kind::boolean; out.boolean = true; return true;
      case 'F': out.kind = Kind::boolean; return true;
      case 'i': return small_integer(out);
      case 'l': return large_integer(out);
      case 'g': out.kind = Kind::real; return real(out.real);
      case 'y': out.kind = Kind::complex; return real(out.real) && real(out.imaginary);
      case 'u': out.kind = Kind::string; return text(out.text);
      case 's': out.kind = Kind::bytes; return text(out.text);
      case '(': out.kind = Kind::tuple; return items(out, depth);
      case '[': out.kind = Kind::list; return items(out, depth);
      case '{': out.kind = Kind::dict; return pairs(out, depth);
      default: --at_; return fail("no plain value");
    }
  }

 private:
  template <typename Number>
  bool little_endian(Number& out) {
    if (left() < sizeof out) return fail("ends inside a number");
    out = 0;
    for (std::size_t i = 0; i < sizeof out; ++i) out = static_cast<Number>(out | static_cast<Number>(static_cast<unsigned char>(bytes_[at_++])) << (8 * i));
    return true;
  }

  bool small_integer(Value& out) {
    std::uint32_t bits = 0;
    if (!little_endian(bits)) return false;
    out = Value::of(static_cast<std::int64_t>(static_cast<std::int32_t>(bits)));
    return true;
  }

  bool large_integer(Value& out) {
    std::uint32_t bits = 0;
    if (!little_endian(bits)) return false;
    const bool negative = static_cast<std::int32_t>(bits) < 0;
    const std::size_t count = negative ? -bits : bits;
    if (count > (left()) / 2) return fail("an integer longer than the rest");
    std::vector<std::uint16_t> digits(count);
    for (std::uint16_t& digit : digits) {
      if (!little_endian(digit)) return false;
      if (digit >> bits_of_digit != 0) return fail("no digit");
    }
    if (digits.empty() || digits.back() == 0) return fail("an integer with leading zeros");
    out.kind = Kind::integer;
    out.text = integer_text(digits, negative);
    return true;
  }

  bool real(double& out) {
    std::uint64_t bits = 0;
    if (!little_endian(bits)) return false;
    out = std::bit_cast<double>(bits);
    return true;
  }

  bool text(std::string& out) {
    std::uint32_t size = 0;
    return little_endian(size) && take_text(size, out);
  }

  bool items(Value& out, std::size_t depth) {
    std::uint32_t count = 0;
    if (!little_endian(count)) return false;
    // Every value takes a byte at least: a count beyond that is a lie, found before memory is taken for it.
    if (count > left()) return fail("more items than bytes");
    out.items.reserve(std::min<std::size_t>(count, 1024));
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!value(out.items.emplace_back(), depth + 1)) return false;
    }
    return true;
  }

  bool pairs(Value& out, std::size_t depth) {
    while (at_ < bytes_.size() && bytes_[at_] != '0') {
      if (!value(out.items.emplace_back(), depth + 1) || !value(out.items.emplace_back(), depth + 1)) return false;
    }
    if (at_ == bytes_.size()) return fail("ends inside a dict");
    ++at_;
    return true;
  }
};

}  // namespace

void marshal_tuple_to(std::size_t count, std::string& out) {
  out += '(';
  append_size(count, out);
}

bool marshal_to(const Value& value, std::string& out) {
  const auto all_items = [&] { return std::all_of(value.items.begin(), value.items.end(), [&](const Value& item) { return marshal_to(item, out); }); };
  switch (value.kind) {
    case Kind::none: out += 'N'; return true;
    case Kind::boolean: out += value.boolean ? 'T' : 'F'; return true;
    case Kind::integer: return append_integer(value.text, out);
    case Kind::real:
      out += 'g';
      append_real(value.real, out);
      return true;
    case Kind::complex:
      out += 'y';
      append_real(value.real, out);
      append_real(value.imaginary, out);
      return true;
    case Kind::string:
    case Kind::bytes:
      out += value.kind == Kind::string ? 'u' : 's';
      append_size(value.text.size(), out);
      out += value.text;
      return true;
    case Kind::list:
      out += '[';
      append_size(value.items.size(), out);
      return all_items();
    case Kind::tuple: marshal_tuple_to(value.items.size(), out); return all_items();
    case Kind::dict: {
      out += '{';
      const bool whole = all_items();
      out += '0';
      return whole;
    }
    case Kind::undefined:
    case Kind::decimal:
    case Kind::set:
    case Kind::frozenset:
    case Kind::named:
    case Kind::object: break;
  }
  return false;
}

tl::expected<Value, ValueError> unmarshal(std::string_view bytes) {
  return whole_value<MarshalReader>(bytes);
}

}  // namespace fixpoint::sandbox::detail
