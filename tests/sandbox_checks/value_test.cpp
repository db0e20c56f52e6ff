#include "sandbox/value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace fixpoint::sandbox {
namespace {

Value literal(std::string_view text) {
  auto value = parse_python_literal(text);
  EXPECT_TRUE(value) << text << ": " << (value ? "" : value.error().what);
  return value ? *value : Value{};
}

std::string shown(std::string_view text) { return to_text(literal(text)); }

TEST(PythonLiteralTest, ReadsWhatPythonWrites) {
  for (const char* text :
       {"None", "True", "False", "0", "-7", "123456789012345678901234567890", "1.5", "-0.0", "1e+100", "1e-05", "0.1", "''", "'a'",
        "\"it's\"", "b'x\\xff'", "[]", "[1, [2, 3]]", "()", "(1,)", "(1, 2)", "{}", "{1: 'a', 'b': [2]}", "{1, 2}", "set()",
        "frozenset({1})", "Decimal('1.50')", "(1.0+2.0j)"}) {
    EXPECT_EQ(shown(text), text);
  }
}

TEST(PythonLiteralTest, ReadsItsManyNotations) {
  EXPECT_EQ(shown("1_000"), "1000");
  EXPECT_EQ(shown("0xff"), "255");
  EXPECT_EQ(shown("0b101"), "5");
  EXPECT_EQ(shown(".5"), "0.5");
  EXPECT_EQ(shown("5."), "5.0");
  EXPECT_EQ(shown("--5"), "5");
  EXPECT_EQ(shown("-True"), "-1");
  EXPECT_EQ(shown("3j"), "(0.0+3.0j)");
  EXPECT_EQ(shown("'a' \"b\"  'c'"), "'abc'");
  EXPECT_EQ(shown("r'\\n'"), "'\\\\n'");
  EXPECT_EQ(shown("'\\x41\\u00e9\\U0001F600\\101'"), "'Aé😀A'");
  EXPECT_EQ(shown("'''two\nlines'''"), "'two\\nlines'");
  EXPECT_EQ(shown("[1,\n  2,  # two\n]"), "[1, 2]");
  EXPECT_EQ(shown("set([2, 1])"), "{2, 1}");
  EXPECT_EQ(shown("{1: 'a', 2: 'b', 1.0: 'c'}"), "{1: 'c', 2: 'b'}");
  EXPECT_EQ(shown("{1, True, 2,}"), "{1, 2}");
  EXPECT_EQ(shown("set([1, 1])"), "{1}");
  EXPECT_EQ(shown("float('inf')"), "inf");
  EXPECT_EQ(shown("((1))"), "1");
}

TEST(PythonLiteralTest, RefusesWhatIsNoLiteral) {
  for (const char* text : {"", "f(1)", "x", "1 + 2", "[1, 2", "[1 2]", "{1: }", "'open", "'a\nb'", "1 2", "012", "0x", "[x for x in y]", "f'{x}'",
                           "b'é'", "'\\N{DASH}'", "1if", "-'a'", "{1, 2: 3}", "lambda: 1", "set(1)", "tuple({1, 2})", "Decimal('x')", "*a"}) {
    EXPECT_FALSE(parse_python_literal(text)) << text;
  }
}

TEST(PythonLiteralTest, DepthIsBounded) {
  EXPECT_TRUE(parse_python_literal(std::string(150, '[') + std::string(150, ']')));
  const auto deep = parse_python_literal(std::string(100'000, '['));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().what, "nested too deeply");
}

TEST(JsonValueTest, ReadsJson) {
  const auto value = parse_json_value(R"({"a": [1, 2.5, true, null, "\u00e9\n"], "b": {}, "c": -3e2})");
  ASSERT_TRUE(value);
  EXPECT_EQ(to_text(*value), "{'a': [1, 2.5, True, None, 'é\\n'], 'b': {}, 'c': -300.0}");
  EXPECT_FALSE(parse_json_value("None"));
  EXPECT_FALSE(parse_json_value("{\"a\": }"));
}

TEST(ValueTest, WireFormKeepsEveryValue) {
  for (const char* text : {"None", "True", "-12", "99999999999999999999", "2.5", "-0.0", "1e-320", "'a\\x00b'", "b'\\xff\\x00'", "[1, (2,), {3}]",
                           "{'k': {1: [None]}}", "frozenset({1})", "(1+2j)", "Decimal('1E+3')"}) {
    const Value value = literal(text);
    const auto back = decode(encode(value));
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(encode(*back), encode(value)) << text;
    EXPECT_EQ(to_text(*back), to_text(value)) << text;
  }
  EXPECT_TRUE(std::signbit(decode(encode(Value::of(-0.0)))->real));
  EXPECT_TRUE(std::isnan(decode(encode(Value::of(std::nan(""))))->real));
  EXPECT_EQ(decode(encode(Value::of(-std::numeric_limits<double>::infinity())))->real, -std::numeric_limits<double>::infinity());
}

TEST(ValueTest, DecodeRefusesBrokenBytesWithTheirOffset) {
  for (const char* wire : {"", "i", "i3:12", "i2:0x", "i2:01", "i2:-0", "i1:a", "x", "l9:N", "l99999999999:", "l-1:", "s5:abc", "NN", "f3:abc", "f0:", "d1:N", "c", "cf1:1",
                           "n3:abc", "o1:a", "o1:ax:", "D2:xx", "s1", "l1:l1:l1:"}) {
    EXPECT_FALSE(decode(wire)) << wire;
  }
  EXPECT_EQ(decode("l2:Nx").error().offset, 4u);
  EXPECT_FALSE(decode(std::string(100'000, 'n')));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "l1:";
  EXPECT_EQ(decode(deep + "N").error().what, "nested too deeply");
}

TEST(ValueTest, RandomBytesNeverDecodeToMoreThanTheySay) {
  std::mt19937 random(7);
  const std::string alphabet = "NTFiflstdSzbcno0123456789:-x.";
  for (int round = 0; round < 20'000; ++round) {
    std::string wire;
    for (std::size_t i = random() % 24; i > 0; --i) wire += alphabet[random() % alphabet.size()];
    if (const auto value = decode(wire)) {
      EXPECT_LE(encode(*value).size(), wire.size() * 24 + 64) << wire;
    }
  }
}

TEST(ValueTest, TextIsBoundedAndSaysHowMuchIsMissing) {
  const std::string text = to_text(Value::of(std::string(5000, 'a')), 100);
  EXPECT_LT(text.size(), 200u);
  EXPECT_NE(text.find("more"), text.npos);
  std::vector<Value> many(100'000, Value::of(7));
  EXPECT_LT(to_text(Value::list_of(std::move(many)), 1000).size(), 1200u);
  EXPECT_EQ(to_text(Value::of("ééé"), 4), "'é… (3 more bytes and 1 more values)");
}

}  // namespace
}  // namespace fixpoint::sandbox
