#pragma once

#include <tl/expected.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fixpoint::sandbox {

// A plain value that crossed the wall between a candidate and its judge: what a function was called with, what it gave back,
// what was expected. It holds data only: a candidate's classes, operators and representations never take part in a comparison.
struct Value {
  enum class Kind : std::uint8_t {
    none,       // Python None, JavaScript null
    undefined,  // JavaScript undefined
    boolean,
    integer,    // any size: `text` is decimal with an optional '-', or "[-]0x…" beyond 8192 bits
    real,       // `real`
    complex,    // `real`, `imaginary`
    decimal,    // `text` as Python's Decimal prints it
    string,     // `text` is UTF-8; lone surrogates are kept as three bytes each
    bytes,      // `text`
    list, tuple, set, frozenset,  // `items`
    dict,       // `items`: key, value, key, value …, in the order of insertion
    named,      // `text` is a type's name ("Counter", "deque", "iterator", "Point"), `items` has one value: its plain content
    object,     // an opaque object: `text` is its class, `number` its handle
  };

  Kind kind = Kind::none;
  bool boolean = false;
  double real = 0;
  double imaginary = 0;
  std::uint64_t number = 0;
  std::string text;
  std::vector<Value> items;

  static Value of(bool value);
  static Value of(std::int64_t value);
  static Value of(int value) { return of(static_cast<std::int64_t>(value)); }
  static Value of(double value);
  static Value of(std::string value);
  static Value of(const char* value) { return of(std::string(value)); }
  static Value bytes_of(std::string value);
  static Value list_of(std::vector<Value> values);
  static Value tuple_of(std::vector<Value> values);
};

// What a parser of values refuses, and where.
struct ValueError {
  std::size_t offset = 0;
  std::string what;
};

inline constexpr std::size_t max_value_depth = 200;
inline constexpr std::size_t max_value_nodes = 4'000'000;

// The form in which values travel, but for most calls of Python functions (detail/check/marshal.h): one tag byte, lengths in decimal, e.g. `l2:i1:7s2:ab`. See docs/sandbox.md.
std::string encode(const Value& value);
void encode_to(const Value& value, std::string& out);
// The whole text must be one value; anything else is refused with its offset. Depth and node count are bounded.
[[nodiscard]] tl::expected<Value, ValueError> decode(std::string_view wire);

// A value as Python would print it, at most `max_bytes` long (then "… (N more bytes)" where N counts what was left out).
std::string to_text(const Value& value, std::size_t max_bytes = 2000);

// A Python literal, as in a test: numbers, strings, bytes, None, True, False, list, tuple, dict, set, unary minus, complex
// sums, and set(…), frozenset(…), float('…'), Decimal('…') of literals. Anything else is an error, not a guess.
[[nodiscard]] tl::expected<Value, ValueError> parse_python_literal(std::string_view text);
// JSON as Python's json module reads it (big integers stay exact; NaN and Infinity are taken).
[[nodiscard]] tl::expected<Value, ValueError> parse_json_value(std::string_view text);

}  // namespace fixpoint::sandbox
