#include <gtest/gtest.h>

#include "evals/detail/bash_calls.h"
#include "evals/detail/check_asserts.h"
#include "evals/detail/contest_output.h"
#include "evals/detail/line_diff.h"
#include "evals/detail/plus_oracle.h"

namespace fixpoint::evals::detail {
namespace {

using sandbox::Value;

Value value(std::string_view literal) { return sandbox::parse_python_literal(literal).value(); }

bool accepts_text(Oracle oracle, std::string_view got, std::string_view expected, double tolerance = 0, std::string_view arguments = "None") {
  return accepts_packed(oracle, value(got), pack({value(arguments), value(expected), tolerance}));
}

TEST(PlusOracleTest, TolerancesAreStickyFromTheFirstFloatOn) {
  const std::vector<Value> expected{value("1"), value("2.0"), value("3"), value("[1.0, 2]"), value("'x'")};
  EXPECT_EQ(effective_tolerances(0, expected), (std::vector<double>{0, 1e-6, 1e-6, 1e-6, 1e-6}));
  EXPECT_EQ(effective_tolerances(1e-4, expected), (std::vector<double>(5, 1e-4)));
  EXPECT_EQ(effective_tolerances(0, std::vector<Value>{value("[]"), value("[1.0, 2]")}), (std::vector<double>{0, 0}));
}

TEST(PlusOracleTest, EqualityIsPythonsThenCloseNumbersOfTheSameType) {
  EXPECT_TRUE(accepts_text(Oracle::equal, "1", "1.0"));
  EXPECT_FALSE(accepts_text(Oracle::equal, "(1,)", "[1]"));
  EXPECT_TRUE(accepts_text(Oracle::equal, "1.0000001", "1.0", 1e-6));
  EXPECT_FALSE(accepts_text(Oracle::equal, "1.1", "1.0", 1e-6));
  EXPECT_FALSE(accepts_text(Oracle::equal, "[1.0]", "[1.0, 2.0]", 1e-6));
  EXPECT_FALSE(accepts_text(Oracle::equal, "(1.0000001,)", "[1.0]", 1e-6));
  EXPECT_TRUE(accepts_text(Oracle::equal, "[[1.0000001], [2]]", "[[1.0], [2]]", 1e-6));
  EXPECT_TRUE(accepts_text(Oracle::equal, "1000000.05", "1000000.0", 1e-6));  // the relative part: 1e-7 of it
  EXPECT_FALSE(accepts_text(Oracle::equal, "'1'", "1", 1e-6));
  EXPECT_FALSE(accepts_text(Oracle::equal, "float('nan')", "float('nan')", 1e-6));
}

TEST(PlusOracleTest, SpecialOraclesDecideWhereEqualityCannot) {
  EXPECT_TRUE(accepts_text(Oracle::polynomial_zero, "-0.5", "0", 1e-4, "[[1, 2]]"));
  EXPECT_FALSE(accepts_text(Oracle::polynomial_zero, "0.5", "-0.5", 1e-4, "[[1, 2]]"));
  EXPECT_FALSE(accepts_text(Oracle::polynomial_zero, "None", "-0.5", 1e-4, "[[1, 2]]"));
  EXPECT_TRUE(accepts_text(Oracle::any_value, "'anything'", "True"));
  EXPECT_TRUE(accepts_text(Oracle::zero_accepted, "0", "7"));
  EXPECT_FALSE(accepts_text(Oracle::zero_accepted, "1", "7"));
  EXPECT_TRUE(accepts_text(Oracle::pyramid_surface, "35", "33", 0, "[3, 4]"));  // 9 + 2·3·√(2.25+16) = 34.63
  EXPECT_TRUE(accepts_text(Oracle::pyramid_surface, "33", "33", 0, "[3, 4]"));
  EXPECT_FALSE(accepts_text(Oracle::pyramid_surface, "34", "33", 0, "[3, 4]"));
}

TEST(PlusOracleTest, SetsOfOutputs) {
  EXPECT_TRUE(accepts_text(Oracle::same_set, "[2, 1, 1]", "(1, 2)"));
  EXPECT_FALSE(accepts_text(Oracle::same_set, "[1]", "(1, 2)"));
  EXPECT_TRUE(accepts_text(Oracle::same_set, "'ab'", "['b', 'a']"));
  EXPECT_FALSE(accepts_text(Oracle::same_set, "[[1]]", "[[1]]"));  // unhashable: set() raises
  EXPECT_FALSE(accepts_text(Oracle::same_set, "3", "[3]"));
}

TEST(PlusOracleTest, PaddedDigitDistance) {
  EXPECT_TRUE(accepts_text(Oracle::padded_digit_distance, "6", "1", 0, "[1, 2005]"));
  EXPECT_TRUE(accepts_text(Oracle::padded_digit_distance, "1", "1", 0, "[1, 2005]"));
  EXPECT_FALSE(accepts_text(Oracle::padded_digit_distance, "2", "1", 0, "[1, 2005]"));
  EXPECT_FALSE(accepts_text(Oracle::padded_digit_distance, "2", "1", 0, "[-1, 25]"));
}

TEST(ContestOutputTest, LinesAreStrippedAndUnequalOnesComparedAsDecimals) {
  EXPECT_EQ(output_difference("1.0  2\n", "1 2.000"), "");
  EXPECT_EQ(output_difference("  a b \n\n", "a b"), "");
  EXPECT_EQ(output_difference("1e3", "1000"), "");
  EXPECT_EQ(output_difference("50000000000000000", "50000000000000001"), "line 1: '50000000000000000' is not '50000000000000001'");
  EXPECT_NE(output_difference("a  b", "a b"), "");
  EXPECT_NE(output_difference("YES", "yes"), "");
  EXPECT_EQ(output_difference("1\n\n2", "1\n2"), "printed 3 lines, not 2");
  EXPECT_NE(output_difference("nan", "NaN"), "");
}

TEST(ContestOutputTest, DecimalsAreExact) {
  EXPECT_TRUE(same_decimal("-0", "0"));
  EXPECT_TRUE(same_decimal("+1_000.50", "1000.5"));
  EXPECT_TRUE(same_decimal("Infinity", "inf"));
  EXPECT_FALSE(same_decimal("inf", "-inf"));
  EXPECT_FALSE(same_decimal("0x10", "16"));
  EXPECT_FALSE(same_decimal("1.", "one"));
  EXPECT_TRUE(same_decimal("1.", "1"));
  EXPECT_FALSE(same_decimal(".", "0"));
  EXPECT_FALSE(same_decimal("1e", "1"));
}

TEST(BashCallsTest, ThePublishedFormIsTakenApart) {
  const auto tests = parse_bash_tests(
      "}\n\ncandidate() {\n    add \"$@\"\n}\n\nset -e\nrun_test() {\n    [[ $(candidate \"1\" \"a) = b\") = \"x\\$y\" ]]\n    [[ $(candidate) = \"\" ]]\n}\n\nrun_test");
  ASSERT_TRUE(tests);
  EXPECT_EQ(tests->function, "add");
  ASSERT_EQ(tests->calls.size(), 2u);
  EXPECT_EQ(tests->calls[0].command, "candidate \"1\" \"a) = b\"");
  EXPECT_EQ(unquote_bash(tests->calls[0].expected), "x$y");
  EXPECT_EQ(unquote_bash(tests->calls[1].expected), "");
  EXPECT_FALSE(parse_bash_tests("}\n\ncandidate() {\n    add \"$@\"\n}\n\nset -e\nrun_test() {\n    true\n}\n\nrun_test"));
  EXPECT_FALSE(parse_bash_tests(""));
  EXPECT_FALSE(unquote_bash("\"$(id)\""));
}

TEST(LineDiffTest, KeepsCommonLinesAndRebuildsBothSides) {
  std::string before;
  std::string after;
  for (const DiffLine& line : line_diff("a\nb\nc\nd\n", "a\nc\nx\nd\n")) {
    if (line.mark != '+') before += line.text + "\n";
    if (line.mark != '-') after += line.text + "\n";
  }
  EXPECT_EQ(before, "a\nb\nc\nd\n");
  EXPECT_EQ(after, "a\nc\nx\nd\n");
  EXPECT_EQ(line_diff("a\nb\nc\nd\n", "a\nc\nx\nd\n").size(), 5u);
  EXPECT_TRUE(line_diff("", "").empty());
}

TEST(CheckAssertsTest, ABodyOfAssertionsIsAList) {
  EXPECT_EQ(check_as_asserts("\n\nMETADATA = {\n    'author': 'x',\n    'dataset': 'test'\n}\n\n\ndef check(candidate):\n    # simple\n    assert candidate([1], 2) == 3\n"
                             "    assert True, \"def check(candidate): nothing\"\n\n    assert candidate('assert candidate(', -1) == [\n        1.5]\n    assert candidate(',') == {1: (2, 3)}, \"one, two\"\n    assert add(0, 0) == 0\n", "add"),
            "assert add([1], 2) == 3\nassert add('assert candidate(', -1) == [\n1.5]\nassert add(',') == {1: (2, 3)}\nassert add(0, 0) == 0\n");
}

TEST(CheckAssertsTest, AnyOtherBodyIsLeftAlone) {
  for (const char* body : {"    assert abs(candidate(1) - 2) < 1e-6\n", "    for i in range(3):\n        assert candidate(i) == i\n", "    x = 1\n    assert candidate(x) == 1\n",
                           "    assert candidate(1) == candidate(1)\n", "    assert candidate(1)\n", "    assert candidate(\"\"\"a\n    b\"\"\") == 1\n", "    pass\n", "    assert True\n", "    assert other(1) == 2\n",
                           "    assert candidate(1) == 1\nprint(2)\n", "    assert candidate(1) == 1\n    return\n    assert candidate(2) == 9\n"}) {
    EXPECT_FALSE(check_as_asserts(std::string("def check(candidate):\n") + body, "add")) << body;
  }
  EXPECT_FALSE(check_as_asserts("import math\ndef check(candidate):\n    assert candidate(1) == 1\n", "add"));
  EXPECT_FALSE(check_as_asserts("def check(f):\n    assert candidate(1) == 1\n", "add"));
  EXPECT_FALSE(check_as_asserts("", "add"));
}

}  // namespace
}  // namespace fixpoint::evals::detail
