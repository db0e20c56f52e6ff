#include "sandbox/equality.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fixpoint::sandbox {
namespace {

Value literal(std::string_view text) {
  auto value = parse_python_literal(text);
  EXPECT_TRUE(value) << text;
  return value ? *value : Value{};
}

bool same(std::string_view got, std::string_view expected, const Equality& rules = {}) { return equal(literal(got), literal(expected), rules); }

TEST(EqualityTest, IsPythonsOnPlainValues) {
  for (auto [a, b] : std::initializer_list<std::pair<const char*, const char*>>{
           {"1", "1.0"}, {"True", "1"}, {"0", "False"}, {"0.0", "-0.0"}, {"{1, 2}", "{2, 1}"}, {"{1: 2, 3: 4}", "{3: 4, 1: 2}"},
           {"{1.0: 'a'}", "{1: 'a'}"}, {"set()", "frozenset()"}, {"[1, [2]]", "[1.0, [2]]"}, {"100000000000000000000", "1e20"},
           {"Decimal('1.00')", "1"}, {"Decimal('0.5')", "0.5"}, {"(2+0j)", "2"}, {"{(1, 2): 3}", "{(1, 2.0): 3}"}, {"'é'", "'\\xe9'"}}) {
    EXPECT_TRUE(same(a, b)) << a << " " << b;
  }
  for (auto [a, b] : std::initializer_list<std::pair<const char*, const char*>>{
           {"1", "2"}, {"1", "'1'"}, {"[1]", "(1,)"}, {"[1]", "[1, 2]"}, {"None", "False"}, {"''", "None"}, {"b'a'", "'a'"}, {"{1}", "[1]"},
           {"{1: 2}", "{1: 3}"}, {"{1: 2}", "{1: 2, 2: 3}"}, {"Decimal('0.1')", "0.1"}, {"100000000000000000001", "1e20"},
           {"9007199254740993", "9007199254740992.0"}, {"float('nan')", "float('nan')"}, {"0.1", "0.10000000000000002"}, {"{}", "set()"}}) {
    EXPECT_FALSE(same(a, b)) << a << " " << b;
  }
}

TEST(EqualityTest, TolerancesReachFloatsOnly) {
  const Equality loose{.absolute_tolerance = 0.01};
  EXPECT_TRUE(same("[1.001, {'a': 2.0}]", "[1.0, {'a': 2.005}]", loose));
  EXPECT_FALSE(same("1.02", "1.0", loose));
  EXPECT_TRUE(same("1", "1.005", loose));
  EXPECT_FALSE(same("10", "11", Equality{.absolute_tolerance = 5}));
  EXPECT_TRUE(same("1e20", "100000000000000000001", Equality{.relative_tolerance = 1e-9}));
  EXPECT_FALSE(same("float('inf')", "1e308", Equality{.absolute_tolerance = 1e308}));
  EXPECT_TRUE(same("float('nan')", "float('nan')", Equality{.nan_equals_nan = true}));
}

TEST(EqualityTest, StrictTypesAndSequences) {
  EXPECT_FALSE(same("1", "1.0", Equality{.strict_types = true}));
  EXPECT_FALSE(same("True", "1", Equality{.strict_types = true}));
  EXPECT_TRUE(same("[1, (2, 3)]", "(1, [2, 3])", Equality{.lists_equal_tuples = true}));
  EXPECT_TRUE(same("[3, 1, 1]", "(1, 3)", Equality{.ignore_order = true}));
  EXPECT_FALSE(same("[3, 1]", "(1, 2)", Equality{.ignore_order = true}));
}

TEST(EqualityTest, EvalPlusIsExactFirstThenCloseForFloats) {
  const Equality plus{.evalplus = true};
  EXPECT_TRUE(same("1.0000001", "1.0", plus));
  EXPECT_FALSE(same("1.1", "1.0", plus));
  EXPECT_TRUE(same("[1.0000001, 2.0]", "[1.0, 2.0]", plus));
  EXPECT_FALSE(same("(1.0000001, 2.0)", "[1.0, 2.0]", plus)) << "the types must be the same where values are only close";
  EXPECT_FALSE(same("['a', 1.0000001]", "['a', 1.0]", plus)) << "a list that is not all floats is exact";
  EXPECT_FALSE(same("1", "1.0000001", plus)) << "int and float are two types";
  Equality given = plus;
  given.absolute_tolerance = 1e-4;
  EXPECT_TRUE(same("[1, 2.00005]", "[1, 2.0]", given));
}

Value named(std::string name, Value content) {
  Value out;
  out.kind = Value::Kind::named;
  out.text = std::move(name);
  out.items.push_back(std::move(content));
  return out;
}

TEST(EqualityTest, SubclassesCountAsTheirPlainContent) {
  EXPECT_TRUE(equal(named("Counter", literal("{1: 2}")), literal("{1: 2}")));
  EXPECT_TRUE(equal(named("subclass:Liar", literal("5")), literal("5")));
  EXPECT_FALSE(equal(named("subclass:Liar", literal("4")), literal("5")));
  EXPECT_FALSE(equal(named("deque", literal("[1]")), literal("[1]")));
  EXPECT_TRUE(equal(named("deque", literal("[1]")), named("deque", literal("[1]"))));
  EXPECT_FALSE(equal(named("iterator", literal("[1]")), named("iterator", literal("[1]")))) << "iterators are not values";
}

TEST(EqualityTest, ObjectsEqualNothing) {
  Value object;
  object.kind = Value::Kind::object;
  EXPECT_FALSE(equal(object, object));
}

TEST(EqualityTest, AnOracleDecidesAlone) {
  Equality rules;
  rules.oracle = [](const Value& got, const Value&) { return got.kind != Value::Kind::none; };
  EXPECT_TRUE(same("3", "None", rules));
  EXPECT_FALSE(same("None", "None", rules));
}

TEST(TextEqualityTest, LinesForgiveTrailingBlanksOnly) {
  EXPECT_FALSE(difference("1 2 \n3\n\n", "1 2\n3"));
  EXPECT_TRUE(difference("1  2\n", "1 2\n"));
  EXPECT_TRUE(difference(" 1\n", "1\n"));
  EXPECT_TRUE(difference("1\n2", "1\n"));
  const auto found = difference("a\nb\n", "a\nc\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->line, 2u);
  EXPECT_EQ(found->got, "b");
  EXPECT_EQ(found->expected, "c");
}

TEST(TextEqualityTest, ExactIsExact) {
  EXPECT_FALSE(difference("a\n", "a\n", {TextMode::exact}));
  EXPECT_TRUE(difference("a", "a\n", {TextMode::exact}));
  EXPECT_TRUE(difference("a\r\n", "a\n", {TextMode::exact}));
}

TEST(TextEqualityTest, TokensAndNumbers) {
  EXPECT_FALSE(difference("1\n2  3", "1 2 3\n", {TextMode::tokens}));
  EXPECT_TRUE(difference("1 2", "1 2 3", {TextMode::tokens}));
  EXPECT_TRUE(difference("1.0", "1", {TextMode::tokens}));
  EXPECT_FALSE(difference("1.0 0.50", "1 0.5", {TextMode::numbers}));
  EXPECT_TRUE(difference("0.3333", "0.3334", {TextMode::numbers}));
  EXPECT_FALSE(difference("0.3333", "0.3334", {TextMode::numbers, 1e-3, 0}));
  EXPECT_TRUE(difference("nan", "1", {TextMode::numbers, 1e9, 0}));
  EXPECT_TRUE(difference("inf", "1", {TextMode::numbers, 1e300, 0}));
  EXPECT_TRUE(difference("yes", "no", {TextMode::numbers, 1, 1}));
}

TEST(TextEqualityTest, EmptyOutputIsNotAnAnswer) {
  EXPECT_TRUE(difference("", "1"));
  EXPECT_FALSE(difference("", ""));
  EXPECT_FALSE(difference("\n", ""));
}

}  // namespace
}  // namespace fixpoint::sandbox
