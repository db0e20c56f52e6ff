#include "sandbox/detail/check/marshal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fixpoint::sandbox::detail {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

std::string marshalled_form(const Value& value) {
  std::string out;
  EXPECT_TRUE(marshal_to(value, out)) << to_text(value);
  return out;
}

std::string read(std::string_view form) {
  const auto value = unmarshal(form);
  return value ? to_text(*value) : "error: " + value.error().what;
}

TEST(MarshalTest, WhatIsWrittenIsReadBack) {
  for (const char* text : {"None", "True", "False", "0", "-1", "2147483647", "-2147483648", "2147483648", "-2147483649", "9223372036854775807",
                           "-9223372036854775808", "1.5", "-0.0", "1e+100", "'a'", "'é\\n'", "b'x\\xff'", "[]", "()", "{}", "[1, [2, (3,)], {'a': None, 2: [b'']}]",
                           "(1.0+2.0j)"}) {
    const auto value = parse_python_literal(text);
    ASSERT_TRUE(value) << text;
    EXPECT_EQ(read(marshalled_form(*value)), text);
  }
  for (const double number : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::denorm_min()}) {
    EXPECT_EQ(unmarshal(marshalled_form(Value::of(number)))->real, number);
  }
  EXPECT_TRUE(std::isnan(unmarshal(marshalled_form(Value::of(std::nan(""))))->real));
}

// The bytes that CPython's marshal.dumps(value, 2) gives.
TEST(MarshalTest, IsTheInterpretersForm) {
  const auto form = [](const char* text) { return marshalled_form(*parse_python_literal(text)); };
  EXPECT_EQ(form("[1, -2]"), bytes({'[', 2, 0, 0, 0, 'i', 1, 0, 0, 0, 'i', 0xfe, 0xff, 0xff, 0xff}));
  EXPECT_EQ(form("-4294967297"), bytes({'l', 0xfd, 0xff, 0xff, 0xff, 1, 0, 0, 0, 4, 0}));
  EXPECT_EQ(form("{'a': (True, None)}"), bytes({'{', 'u', 1, 0, 0, 0, 'a', '(', 2, 0, 0, 0, 'T', 'N', '0'}));
  EXPECT_EQ(form("1.5"), bytes({'g', 0, 0, 0, 0, 0, 0, 0xf8, 0x3f}));
}

TEST(MarshalTest, WhatThisFormWouldChangeIsNotWritten) {
  for (const char* text : {"{1, 2}", "frozenset({1})", "Decimal('1.5')", "9223372036854775808", "[1, {2}]"}) {
    std::string out;
    EXPECT_FALSE(marshal_to(*parse_python_literal(text), out)) << text;
  }
}

TEST(MarshalTest, LargeIntegersAreReadExactly) {
  EXPECT_EQ(read(bytes({'l', 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4})), "1267650600228229401496703205376");  // 2 to the 100th
  EXPECT_EQ(read(bytes({'l', 251, 255, 255, 255, 1, 0, 52, 18, 0, 0, 0, 0, 1, 0})), "-1152921504759545857");
  // Decimal to 8192 bits, then hexadecimal, as values have it.
  const auto power = [](unsigned bits) {
    std::string form = bytes({'l', static_cast<int>((bits / 15 + 1) & 0xff), static_cast<int>((bits / 15 + 1) >> 8), 0, 0}) + std::string(bits / 15 * 2, '\0');
    const unsigned top = 1u << bits % 15;
    return form + static_cast<char>(top & 0xff) + static_cast<char>(top >> 8);
  };
  const auto below = unmarshal(power(8191));
  ASSERT_TRUE(below);
  EXPECT_EQ(below->text.size(), 2466u);
  EXPECT_TRUE(below->text.starts_with("545374067809707964731492122366")) << below->text.substr(0, 40);
  EXPECT_TRUE(below->text.ends_with("2737857896448")) << below->text.substr(2440);
  const auto above = unmarshal(power(8192));
  ASSERT_TRUE(above);
  EXPECT_EQ(above->text, "0x1" + std::string(2048, '0'));
  EXPECT_EQ(decode(encode(*above))->text, above->text);
}

TEST(MarshalTest, RefusesWhatIsNoPlainValue) {
  EXPECT_EQ(read(""), "error: ends inside a value");
  EXPECT_EQ(read("NN"), "error: bytes after the value");
  for (const char* other : {"c", "<\1", ">\1", ".", "S", "t\1", "z\1"}) EXPECT_EQ(read(other), "error: no plain value") << other;
  EXPECT_EQ(read("0"), "error: no plain value");
  EXPECT_EQ(read(bytes({'i', 1, 0})), "error: ends inside a number");
  EXPECT_EQ(read(bytes({'l', 2, 0, 0, 0, 1, 0})), "error: an integer longer than the rest");
  EXPECT_EQ(read(bytes({'l', 0, 0, 0, 0x80})), "error: an integer longer than the rest");
  EXPECT_EQ(read(bytes({'l', 1, 0, 0, 0, 0, 0x80})), "error: no digit");
  EXPECT_EQ(read(bytes({'l', 1, 0, 0, 0, 0, 0})), "error: an integer with leading zeros");
  EXPECT_EQ(read(bytes({'u', 9, 0, 0, 0, 'a'})), "error: text longer than the rest");
  EXPECT_EQ(read(bytes({'[', 0xff, 0xff, 0xff, 0xff})), "error: more items than bytes");
  EXPECT_EQ(read("{NN"), "error: ends inside a dict");
  EXPECT_EQ(read("{N0"), "error: no plain value");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += bytes({'[', 1, 0, 0, 0});
  EXPECT_EQ(read(deep + "N"), "error: nested too deeply");
}

}  // namespace
}  // namespace fixpoint::sandbox::detail
