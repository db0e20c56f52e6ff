#include "agent/extract.h"

#include <gtest/gtest.h>

namespace fixpoint::agent {
namespace {

TEST(ExtractTest, IsLinearInHostileText) {
  // Each of these took minutes if something looked back at all that came before.
  for (const std::string& unit : {std::string("```\n"), std::string("\"\"\"\n"), std::string("def f(\n"), std::string("`"), std::string(" \n")}) {
    std::string text;
    while (text.size() < 400'000) text += unit;
    const Extracted found = extract(text, "python", "f", "def f(x):");
    EXPECT_LE(found.program.size(), text.size() + 64);
  }
}

TEST(ExtractTest, ProgramsHaveABound) {
  const Extracted found = extract("```python\n" + std::string(5'000'000, 'x') + "\n```", "python", "f");
  EXPECT_LE(found.program.size(), std::size_t{1} << 20);
}

TEST(FindHeaderTest, FromCodeOrFromTheStatement) {
  EXPECT_EQ(find_header("Complete:\ndef f(xs: list[int]) -> int:\n    \"\"\"x: y\"\"\"", "f"), "def f(xs: list[int]) -> int:");
  EXPECT_EQ(find_header("Write `f(a, b)`.", "f"), "def f(a, b):");
  EXPECT_EQ(find_header("Write f.", "f"), "");
  EXPECT_EQ(find_header("Write `f(a)`.", ""), "");
}

TEST(ExtractAssertionsTest, WholeStatementsOnly) {
  const auto found = extract_assertions("Tests:\n```python\nassert f([1,\n  2]) == 3\n  assert f(')') == 1\nprint(1)\nassert f(1", 9);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], "assert f([1,\n  2]) == 3");
  EXPECT_EQ(found[1], "assert f(')') == 1");
  EXPECT_EQ(extract_assertions("assert 1\nassert 2\nassert 3\n", 2).size(), 2U);
}

TEST(ProgramKeyTest, CommentsBlanksAndLineEndsDoNotCount) {
  const std::string plain = "def f(x):\n    s = \"# no comment\"\n    return s\n";
  const std::string noisy = "# a comment\r\n\r\ndef f(x):  # here\r\n    s = \"# no comment\"   \r\n\r\n    return s";
  EXPECT_EQ(program_key(plain, "python"), program_key(noisy, "python"));
  EXPECT_NE(program_key(plain, "python"), program_key("def f(x):\n    s = \"# no\"\n    return s\n", "python"));
  EXPECT_NE(program_key("if x:\n    a()\n    b()\n", "python"), program_key("if x:\n    a()\nb()\n", "python"));
  EXPECT_EQ(program_key("int f() { return 1; } // x\n", "cpp"), program_key("// y\nint f() { return 1; } /* z */\n", "cpp"));
  EXPECT_EQ(program_key(" \n", "python"), "");
}

TEST(FailureKeyTest, AddressesAndLineNumbersDoNotCount) {
  Judgement a{.status = CheckStatus::runtime_error};
  a.failures = {{.test = "t", .error = "TypeError: <f at 0x7f12> in line 3"}};
  Judgement b = a;
  b.failures[0].error = "TypeError: <f at 0xabcd> in line 14";
  EXPECT_EQ(failure_key(a), failure_key(b));
  b.failures[0].error = "KeyError: 1";
  EXPECT_NE(failure_key(a), failure_key(b));
  Judgement c{.status = CheckStatus::wrong_answer};
  c.failures = {{.test = "t", .actual = "1"}};
  Judgement d = c;
  d.failures[0].actual = "2";
  EXPECT_NE(failure_key(c), failure_key(d));
}

}  // namespace
}  // namespace fixpoint::agent
