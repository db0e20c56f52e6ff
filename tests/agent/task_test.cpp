#include "agent/task.h"

#include <gtest/gtest.h>

namespace fixpoint::agent {
namespace {

TEST(TaskMarkdownTest, SectionsBecomeTestsAndTheRestIsTheStatement) {
  const auto task = parse_task_markdown(
      "# Add\r\n\r\nLanguage: Python\r\nWrite `add(a, b)`.\r\n\r\n## Notes\r\nBe quick.\r\n\r\n## Tests\r\n```python\r\nimport math\r\n"
      "assert add(1,\r\n    2) == 3\r\nassert add(0, 0) == 0\r\n```\r\n\r\n## Hidden tests\r\n- `assert add(2, 2) == 4`\r\n");
  ASSERT_TRUE(task.has_value()) << task.error().message();
  EXPECT_EQ(task->statement, "# Add\n\nWrite `add(a, b)`.\n\n## Notes\nBe quick.");
  EXPECT_EQ(task->setup, "import math");
  ASSERT_EQ(task->visible.size(), 2U);
  EXPECT_EQ(std::get<Assertion>(task->visible[0].body).code, "assert add(1,\n    2) == 3");
  ASSERT_EQ(task->hidden.size(), 1U);
  EXPECT_EQ(task->entry_point, "add");
}

TEST(TaskMarkdownTest, InputOutputPairsCheckFunctionsTestFilesAndContext) {
  const auto task = parse_task_markdown(
      "Echo.\nLanguage: c++\n## Tests\n```stdin\n1\n```\n```stdout\n2\n```\n```output\n3\n```\n## Files\n`in/data.txt`\n```\nx\n```\n"
      "```file=b.txt\ny\n```\n");
  ASSERT_TRUE(task.has_value()) << task.error().message();
  EXPECT_EQ(task->language, "cpp");
  ASSERT_EQ(task->visible.size(), 2U);
  EXPECT_EQ(std::get<StdioCase>(task->visible[0].body), (StdioCase{"1\n", "2\n"}));
  EXPECT_EQ(std::get<StdioCase>(task->visible[1].body), (StdioCase{"", "3\n"}));
  ASSERT_EQ(task->context.size(), 2U);
  EXPECT_EQ(task->context[0], (ContextFile{"in/data.txt", "x\n"}));
  EXPECT_EQ(task->context[1].path, "b.txt");

  const auto check = parse_task_markdown("T\nFunction: `f`\n## Tests\n```python\ndef check(candidate):\n    assert candidate(1) == 1\n```\n");
  ASSERT_TRUE(check.has_value()) << check.error().message();
  EXPECT_TRUE(std::holds_alternative<CheckFunction>(check->visible.at(0).body));
  const auto file = parse_task_markdown("T\n## Tests\n```python file=test_x.py\nimport unittest\nclass T(unittest.TestCase): pass\n```\n");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(std::get<TestFile>(file->visible.at(0).body).name, "test_x.py");
}

TEST(TaskMarkdownTest, DoctestsInTheStatementAreTests) {
  const auto task = parse_task_markdown("Write `f`.\n```\n>>> f(1)\n2\n>>> f(2)\n3\n\n>>> x = f(3)\n>>> print(x)\n4\n```\n");
  ASSERT_TRUE(task.has_value());
  ASSERT_EQ(task->visible.size(), 2U);
  EXPECT_EQ(std::get<Assertion>(task->visible[1].body).code, "assert f(2) == 3");
  EXPECT_EQ(task->visible[0].origin, TestOrigin::doctest);
  EXPECT_EQ(task->entry_point, "f");
}

TEST(TaskMarkdownTest, DoctestsThatNeedAnotherExampleAreNoTests) {
  const auto task = parse_task_markdown(
      "Write `f`.\n```\n>>> from solution import f\n>>> ys = [1, 2]\n>>> f(ys)\n3\n>>> a, b = 1, 2\n>>> f([b])\n2\n>>> f([4], ysx=1)\n4\n```\n");
  ASSERT_TRUE(task.has_value());
  ASSERT_EQ(task->visible.size(), 1U);
  EXPECT_EQ(std::get<Assertion>(task->visible[0].body).code, "assert f([4], ysx=1) == 4");
}

TEST(TaskMarkdownTest, AssertionsInCppAreAssertions) {
  const auto task = parse_task_markdown("Language: C++\nWrite `add(a, b)`.\n\n# Tests\n```cpp\nassert(add(1, 2) == 3);\nassert(add(0, 0) == 0);\n```\n");
  ASSERT_TRUE(task.has_value()) << task.error().message();
  ASSERT_EQ(task->visible.size(), 2U);
  EXPECT_EQ(std::get<Assertion>(task->visible[1].body).code, "assert(add(0, 0) == 0);");
}

TEST(TaskMarkdownTest, BlocksOfTestsInTheStatementAreTests) {
  for (const char* block : {"```python tests\nassert add(1, 2) == 3\nassert add(0, 0) == 0\n```",
                            "```tests\nassert add(1, 2) == 3\nassert add(0, 0) == 0\n```",
                            "```python\n# two of them\nassert add(1, 2) == 3\n\nassert add(0, 0) == 0\n```"}) {
    const auto task = parse_task_markdown(std::string("Write `add(a, b)`.\n\n") + block + "\n");
    ASSERT_TRUE(task.has_value()) << task.error().message();
    EXPECT_EQ(task->visible.size(), 2U) << block;
    EXPECT_EQ(task->statement, "Write `add(a, b)`.") << block;
    EXPECT_EQ(task->entry_point, "add");
  }
}

TEST(TaskMarkdownTest, OtherBlocksOfTheStatementStayThere) {
  const auto task = parse_task_markdown(
      "Make this pass:\n\n```python\nx = f(1)\nassert x == 2\n```\n\n```python\nassert f(5) == 6\n```\n\n## Tests\n\n```python\nassert f(1) == 2\n```\n");
  ASSERT_TRUE(task.has_value()) << task.error().message();
  EXPECT_EQ(task->visible.size(), 1U);
  EXPECT_NE(task->statement.find("x = f(1)"), std::string::npos);
  EXPECT_NE(task->statement.find("f(5)"), std::string::npos);
}

TEST(TaskMarkdownTest, HeadingsInsideFencesAreText) {
  const auto task = parse_task_markdown("T\n```\n## Tests\n```\nmore\n");
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->statement, "T\n```\n## Tests\n```\nmore");
}

TEST(TaskMarkdownTest, MistakesAreNamed) {
  EXPECT_EQ(parse_task_markdown("  \n").error().message(), "statement: empty");
  EXPECT_EQ(parse_task_markdown("T\n## Tests\n```stdin\n1\n```\n").error().message(), "Tests: an input without an output");
  EXPECT_EQ(parse_task_markdown("T\n## Files\n`../x`\n```\n1\n```\n").error().message(), "files[0].path: not a relative path: ../x");
  EXPECT_FALSE(parse_task_markdown("T\n## Tests\nnothing here\n").has_value());
}

TEST(TaskJsonTest, AllFormsComeBackAsTheyWere) {
  const auto task = parse_task_json(R"j({"id":"a","statement":"S","language":"PY","entry_point":"f","setup":"import re","shown_tests":1,
    "files":[{"path":"x.py","content":"1"}],"tests":["assert f(1)",{"stdin":"1","stdout":"2"},{"check":"def check(candidate): pass"}],
    "hidden_tests":[{"file":"t.py","content":"def test(): pass"},{"assert":"assert f(2)","origin":"doctest"}]})j");
  ASSERT_TRUE(task.has_value()) << task.error().message();
  EXPECT_EQ(task->language, "python");
  EXPECT_EQ(task->visible.size(), 3U);
  const auto again = parse_task_json(to_json(*task));
  ASSERT_TRUE(again.has_value()) << again.error().message();
  EXPECT_EQ(*again, *task);
}

TEST(TaskJsonTest, MistakesNameTheField) {
  const auto message = [](std::string_view text) { return parse_task_json(text).error().message(); };
  EXPECT_EQ(message("{"), "not valid JSON: fault at byte 2");
  EXPECT_EQ(message(R"j({"statement":1e999})j"), "not valid JSON: a number out of range");
  EXPECT_EQ(message("[]"), "not a JSON object");
  EXPECT_EQ(message("{}"), "statement: missing");
  EXPECT_EQ(message(R"j({"statement":"S","test":[]})j"), "test: unknown field");
  EXPECT_EQ(message(R"j({"statement":"S","tests":["a",{"stdin":1,"stdout":""}]})j"), "tests[1].stdin: not a string");
  EXPECT_EQ(message(R"j({"statement":"S","tests":[{}]})j"), "tests[0]: none of \"assert\", \"stdin\"/\"stdout\", \"check\", \"file\"");
  EXPECT_EQ(message(R"j({"statement":"S","tests":[{"check":"def check(c): 1"}]})j"), "entry_point: missing: tests[0] calls check() with it");
  EXPECT_EQ(message(R"j({"statement":"S","shown_tests":-1})j"), "shown_tests: not within 0..100");
  EXPECT_EQ(message(std::string(100'000, '[')), "nested deeper than 16 levels");
}

TEST(TaskSourceTest, AStubWithADocstringIsATask) {
  const auto task = parse_task_source(
      "from typing import List\n\ndef helper(x):\n    return x\n\ndef scale(xs: List[int]) -> List[int]:\n    \"\"\" Doubles.\n    >>> scale([1])\n"
      "    [2]\n    >>> scale([])\n    []\n    \"\"\"\n",
      "python");
  ASSERT_TRUE(task.has_value()) << task.error().message();
  EXPECT_EQ(task->entry_point, "scale");
  ASSERT_EQ(task->visible.size(), 2U);
  EXPECT_EQ(std::get<Assertion>(task->visible[0].body).code, "assert scale([1]) == [2]");
  EXPECT_TRUE(task->statement.starts_with("Complete `scale`.\n```python\nfrom typing"));
  EXPECT_FALSE(parse_task_source("x = 1\n", "python").has_value());
}

TEST(TaskSourceTest, OtherLanguagesNameTheirLastFunction) {
  const auto task = parse_task_source("#include <vector>\n// Adds all of them.\nlong sum(const std::vector<int>& xs) {\n", "cpp");
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(task->entry_point, "sum");
}

TEST(TaskTest, TheFormIsToldFromTheNameOrTheText) {
  EXPECT_EQ(parse_task("{\"statement\":\"S\"}", "-")->statement, "S");
  EXPECT_EQ(parse_task("Write it.", "-")->statement, "Write it.");
  EXPECT_EQ(parse_task("def f(x):\n    '''It.'''\n", "a.py")->entry_point, "f");
  EXPECT_EQ(parse_task("{}", "x.md")->statement, "{}");
}

TEST(TaskTest, NamesOfLanguages) {
  EXPECT_EQ(canonical_language("C++"), "cpp");
  EXPECT_EQ(canonical_language("JS"), "javascript");
  EXPECT_EQ(canonical_language("Cobol"), "cobol");
  EXPECT_EQ(language_of_file("a/b.cc"), "cpp");
  EXPECT_EQ(language_of_file("README"), "");
  EXPECT_EQ(language_title("cpp"), "C++");
}

TEST(TaskTest, TitlesAreOneShortLine) {
  EXPECT_EQ(title({.statement = "# Add two\nmore"}), "Add two");
  EXPECT_EQ(title({.statement = std::string(200, 'x')}).size(), 72U);
  EXPECT_EQ(title({.id = "HumanEval/1", .statement = "S"}), "HumanEval/1");
}

TEST(TaskTest, ATestFileKeepsItsName) {
  std::string setup;
  const auto tests = parse_tests("def test_a():\n    assert f(1) == 2\n", "dir/test_a.py", "python", &setup);
  ASSERT_TRUE(tests.has_value());
  EXPECT_EQ(std::get<TestFile>(tests->at(0).body).name, "test_a.py");
  const auto asserts = parse_tests("from math import pi\nassert f(1) == pi\n", "t.py", "python", &setup);
  ASSERT_TRUE(asserts.has_value());
  EXPECT_EQ(setup, "from math import pi");
}

}  // namespace
}  // namespace fixpoint::agent
