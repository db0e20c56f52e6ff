#include "agent/sandbox_checker.h"

#include <gtest/gtest.h>

#include "agent/loop.h"
#include "agent/scripted_generator.h"
#include "sandbox/sandbox.h"
#include "tests/agent/loop_fixture.h"

namespace fixpoint::agent {
namespace {

struct SandboxCheckerTest : ::testing::Test {
  static void SetUpTestSuite() {
    auto started = sandbox::Sandbox::start();
    if (started) {
      box = new sandbox::Sandbox(*std::move(started));
    } else {
      why = started.error().message();
    }
  }
  static void TearDownTestSuite() {
    delete box;
    box = nullptr;
  }
  void SetUp() override {
    if (box == nullptr) GTEST_SKIP() << "no sandbox on this machine: " << why;
    checker = make_sandbox_checker(*box);
  }

  Judgement check(const Task& task, const std::string& program, bool trace = false, std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    CheckRequest request{.task = &task, .program = program, .tests = task.visible, .want_trace = trace, .time_limit = limit};
    auto judged = checker->check(request, {});
    EXPECT_TRUE(judged.has_value()) << (judged ? "" : judged.error().detail);
    return judged.value_or(Judgement{.status = CheckStatus::forbidden});
  }

  static sandbox::Sandbox* box;
  static std::string why;
  std::unique_ptr<Checker> checker;
};
sandbox::Sandbox* SandboxCheckerTest::box = nullptr;
std::string SandboxCheckerTest::why;

TEST_F(SandboxCheckerTest, PassesWhatPasses) {
  const Judgement judged = check(make_task(), program(7));
  EXPECT_EQ(judged.status, CheckStatus::passed) << judged.message;
  EXPECT_EQ(judged.passed, 2);
  EXPECT_EQ(judged.total, 2);
  EXPECT_GT(judged.sandbox.count(), 0);
}

TEST_F(SandboxCheckerTest, TellsTheFailingTestItsValueAndTheTrace) {
  const Judgement judged = check(make_task(), "def f(x):\n    y = x + 1\n    return y\n", true);
  EXPECT_EQ(judged.status, CheckStatus::wrong_answer);
  ASSERT_FALSE(judged.failures.empty());
  EXPECT_EQ(judged.failures[0].test, "assert f(1) == 7");
  EXPECT_EQ(judged.failures[0].expected, "");
  EXPECT_EQ(judged.failures[0].actual, "2");
  EXPECT_EQ(judged.failures[0].difference, "got is 5 too small");
  ASSERT_EQ(judged.trace.size(), 2U);  // the arguments stand in the test
  EXPECT_EQ(judged.trace[0].source, "y = x + 1");
  EXPECT_EQ(judged.trace[0].effect, "y = 2");
  EXPECT_EQ(judged.trace[1].effect, "returns 2");
}

TEST_F(SandboxCheckerTest, TellsErrorsApart) {
  const Judgement raised = check(make_task(), "def f(x):\n    return {}[x]\n");
  EXPECT_EQ(raised.status, CheckStatus::runtime_error);
  EXPECT_NE(raised.failures.at(0).error.find("KeyError"), std::string::npos) << raised.failures.at(0).error;
  EXPECT_NE(raised.failures.at(0).error.find("return {}[x]"), std::string::npos) << raised.failures.at(0).error;
  const Judgement syntax = check(make_task(), "def f(x:\n");
  EXPECT_EQ(syntax.status, CheckStatus::compile_error);
  EXPECT_NE(syntax.message.find("SyntaxError"), std::string::npos) << syntax.message;
  const Judgement endless = check(make_task(), "def f(x):\n    while True: pass\n", false, std::chrono::milliseconds(700));
  EXPECT_EQ(endless.status, CheckStatus::time_limit);
  const Judgement leaving = check(make_task(), "import os\ndef f(x):\n    os._exit(0)\n");
  EXPECT_NE(leaving.status, CheckStatus::passed);
}

TEST_F(SandboxCheckerTest, EveryFormOfTest) {
  Task task = make_task();
  task.visible = {{Assertion{"assert f(1) == 7"}},
                  {CheckFunction{"def check(candidate):\n    assert candidate(3) == 7\n"}},
                  {TestFile{"test_f.py", "from solution import f\ndef test_f():\n    assert f(4) == 7\n"}}};
  const Judgement passed = check(task, program(7));
  EXPECT_EQ(passed.status, CheckStatus::passed) << passed.message;
  const Judgement failed = check(task, program(1), true);
  EXPECT_EQ(failed.status, CheckStatus::wrong_answer);
  EXPECT_EQ(failed.passed, 0);
  Task io{.statement = "Double it."};
  io.visible = {{StdioCase{"4\n", "8\n"}}, {StdioCase{"5\n", "10\n"}}};
  EXPECT_EQ(check(io, "print(int(input()) * 2)\n").status, CheckStatus::passed);
  const Judgement wrong = check(io, "n = int(input())\nprint(n + 4)\n", true);
  EXPECT_EQ(wrong.passed, 1);
  EXPECT_EQ(wrong.failures.at(0).input, "5\n");
  EXPECT_EQ(wrong.failures.at(0).index, 1);
  EXPECT_FALSE(wrong.trace.empty());
}

TEST_F(SandboxCheckerTest, AssertionsInCppAreToldApart) {
  Task task{.statement = "Add.", .language = "cpp", .entry_point = "add"};
  for (const char* code : {"assert(add(1, 1) == 2);", "assert(add(2, 2) == 4)", "assert(add(3, 3) == 6);"}) task.visible.push_back({Assertion{code}});
  EXPECT_EQ(check(task, "int add(int a, int b) { return a + b; }\n").passed, 3);
  const Judgement judged = check(task, "int add(int a, int b) { return a * b - (a == 1 ? -1 : 0); }\n");
  EXPECT_EQ(judged.passed, 2);
  EXPECT_EQ(judged.total, 3);
  ASSERT_EQ(judged.failures.size(), 1U);
  EXPECT_EQ(judged.failures[0].test, "assert(add(3, 3) == 6);");
}

TEST_F(SandboxCheckerTest, ACrashInCppIsTracedToItsLine) {
  Task task{.statement = "Sum.", .language = "cpp"};
  task.visible.push_back({StdioCase{"3\n", "3\n"}});
  const Judgement judged = check(task,
                                 "#include <iostream>\n#include <vector>\nint main() {\n  int n;\n  std::cin >> n;\n  std::vector<int> v(1);\n"
                                 "  int* p = v.data() + n * 1000000;\n  *p = n;\n  std::cout << *p << \"\\n\";\n}\n",
                                 true, std::chrono::seconds(60));
  EXPECT_EQ(judged.status, CheckStatus::runtime_error);
  ASSERT_FALSE(judged.trace.empty());
  EXPECT_EQ(judged.trace.back().line, 8);
  EXPECT_NE(judged.trace.back().effect.find("AddressSanitizer"), std::string::npos) << judged.trace.back().effect;
}

TEST_F(SandboxCheckerTest, AUnitTestSaysWhatWasWrong) {
  Task task = make_task();
  task.visible = {{TestFile{"test_x.py", "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n  def test_a(self):\n    self.assertEqual(f(1), 7)\n"}}};
  const Judgement judged = check(task, program(2));
  EXPECT_EQ(judged.status, CheckStatus::wrong_answer);
  ASSERT_FALSE(judged.failures.empty());
  EXPECT_NE((judged.failures[0].error + judged.failures[0].actual).find('2'), std::string::npos) << judged.failures[0].error;
}

TEST_F(SandboxCheckerTest, ContextFilesLieBesideTheProgram) {
  Task task = make_task();
  task.context = {{"helper.py", "VALUE = 7\n"}, {"data/seven.txt", "7"}, {"main.py", "no file of the program's own name\n"}};
  const std::string reads = "from helper import VALUE\ndef f(x):\n    with open('data/seven.txt') as file:\n        return int(file.read()) + VALUE - 7\n";
  EXPECT_EQ(check(task, reads).status, CheckStatus::passed);
  task.visible = {{CheckFunction{"import helper\ndef check(candidate):\n    assert candidate(1) == helper.VALUE\n"}}};
  const Judgement judged = check(task, reads);
  EXPECT_EQ(judged.status, CheckStatus::passed) << judged.message << (judged.failures.empty() ? "" : judged.failures[0].error);
  task.visible.clear();
  EXPECT_EQ(check(task, reads + "f(1)\n").status, CheckStatus::passed);
}

TEST_F(SandboxCheckerTest, WithoutTestsTheProgramMustLoad) {
  Task task{.statement = "S"};
  EXPECT_EQ(check(task, program(1)).status, CheckStatus::passed);
  EXPECT_EQ(check(task, "x = input()\n").status, CheckStatus::passed);
  EXPECT_EQ(check(task, "def f(:\n").status, CheckStatus::compile_error);
  EXPECT_EQ(check(task, "1 / 0\n").status, CheckStatus::runtime_error);
}

TEST_F(SandboxCheckerTest, AnUnknownLanguageIsNoVerdict) {
  Task task{.statement = "S", .language = "cobol"};
  CheckRequest request{.task = &task, .program = "x"};
  const auto judged = checker->check(request, {});
  ASSERT_FALSE(judged.has_value());
  EXPECT_EQ(judged.error().kind, CheckError::Kind::unsupported);
}

TEST_F(SandboxCheckerTest, AWholeLoopInTheRealSandbox) {
  const auto model = make_scripted_generator({{.text = fenced("def f(x):\n    return x\n")}, {.text = fenced(program(7), "It must be seven.")}});
  Loop loop({.model = model.get(), .checker = checker.get()});
  const auto result = loop.run(make_task(), {}, {}, {});
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->end.outcome, Outcome::solved) << result->end.detail;
  EXPECT_EQ(result->end.spent.rounds, 1);
}

}  // namespace
}  // namespace fixpoint::agent
