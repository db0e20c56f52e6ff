#include "sandbox/trace.h"

#include "shared_sandbox.h"

#include <gmock/gmock.h>

namespace fixpoint::sandbox {
namespace {

using ::testing::HasSubstr;

Trace trace_python(const std::string& source, const TraceSubject& subject, const TraceOptions& options = {}) {
  return trace(shared_sandbox(), {Language::python, source}, subject, options);
}

std::string all(const Trace& t) { return to_text(t, 10'000) + "\nverdict " + describe(t.verdict.outcome) + "\n" + t.verdict.standard_error.bytes; }

TEST(PythonTraceTest, ShowsEachLineWithWhatItChanged) {
  const auto t = trace_python("def f(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n", TracedCall{"f", {Value::of(2)}});
  EXPECT_EQ(to_text(t),
            "call f(n = 2)\n"
            "line 2: total = 0    # total = 0\n"
            "line 3: for i in range(n):    # i = 0\n"
            "line 4: total += i\n"
            "line 3: for i in range(n):    # i = 1\n"
            "line 4: total += i    # total = 1\n"
            "line 3: for i in range(n):\n"
            "line 5: return total\n"
            "return 1\n"
            "result: 1\n")
      << all(t);
  EXPECT_EQ(t.steps, 9u);
}

TEST(PythonTraceTest, AnExceptionHasItsFramesAndTheLastSteps) {
  const auto t = trace_python("def g(x):\n    return 10 // x\n\ndef f(xs):\n    out = []\n    for x in xs:\n        out.append(g(x))\n    return out\n",
                              TracedCall{"f", {Value::list_of({Value::of(5), Value::of(0)})}});
  EXPECT_EQ(t.exception, "ZeroDivisionError: integer division or modulo by zero") << all(t);
  ASSERT_EQ(t.frames.size(), 2u) << all(t);
  EXPECT_EQ(t.frames[1].function, "g");
  EXPECT_EQ(t.frames[1].line, 2);
  EXPECT_THAT(to_text(t), HasSubstr("raise "));
  EXPECT_THAT(to_text(t), HasSubstr("out = [2]"));
}

TEST(PythonTraceTest, ComprehensionsFunctionsAndUnwindingMakeNoStepsOfTheirOwn) {
  const auto t = trace_python(
      "def f(xs):\n    def g(y):\n        return ys[y]\n    ys = [x for x in xs if x > 1]\n    zs = sorted(ys, key=lambda y: -y)\n    return g(zs[0])\n",
      TracedCall{"f", {Value::list_of({Value::of(1), Value::of(5)})}});
  const std::string text = all(t);
  EXPECT_EQ(text.find(".0"), std::string::npos) << text;
  EXPECT_EQ(text.find("<function"), std::string::npos) << text;
  EXPECT_EQ(text.find("None"), std::string::npos) << text;
  EXPECT_NE(text.find("IndexError"), std::string::npos) << text;
  EXPECT_NE(text.find("ys = [5]"), std::string::npos) << text;
}

TEST(PythonTraceTest, KeepsTheFirstAndTheLastStepsOfALongRun) {
  TraceOptions options;
  options.first_steps = 5;
  options.last_steps = 5;
  const auto t = trace_python("def f(n):\n    i = 0\n    while i < n:\n        i += 1\n    return i\n", TracedCall{"f", {Value::of(1000)}}, options);
  EXPECT_EQ(t.first.size(), 5u) << all(t);
  EXPECT_EQ(t.last.size(), 5u) << all(t);
  EXPECT_GT(t.steps, 2000u);
  EXPECT_THAT(to_text(t), HasSubstr("steps left out"));
  EXPECT_EQ(t.last.back().event, "return");
  EXPECT_THAT(to_text(t), HasSubstr("return 1000"));
}

TEST(PythonTraceTest, AnEndlessLoopIsStoppedAndShown) {
  TraceOptions options;
  options.limits.cpu = std::chrono::milliseconds(1500);
  options.first_steps = 6;
  options.last_steps = 6;
  const auto t = trace_python("def f(n):\n    i = n\n    while True:\n        i = -i\n", TracedCall{"f", {Value::of(3)}}, options);
  EXPECT_THAT(t.limit, HasSubstr("stopped after")) << all(t);
  EXPECT_FALSE(t.first.empty());
  EXPECT_FALSE(t.last.empty()) << all(t);
  EXPECT_THAT(to_text(t), HasSubstr("i = -3"));
}

TEST(PythonTraceTest, OfAStatementItShowsTheCallThatFailed) {
  const auto t = trace_python("def f(x):\n    y = x * 2\n    return y\n",
                              TracedStatement{"def check(candidate):\n    assert candidate(1) == 2\n    assert candidate(7) == 15\n    assert candidate(8) == 16\ncheck(f)\n"});
  EXPECT_THAT(to_text(t), HasSubstr("call f(x = 7)")) << all(t);
  EXPECT_THAT(to_text(t), HasSubstr("y = 14"));
  EXPECT_THAT(t.exception, HasSubstr("AssertionError"));
}

TEST(PythonTraceTest, OfAWholeProgramItReadsTheInput) {
  const auto t = trace_python("n = int(input())\nm = n * 2\nprint(m[0])\n", TracedRun{"21\n"});
  EXPECT_THAT(to_text(t), HasSubstr("line 2: m = n * 2    # m = 42")) << all(t);
  EXPECT_THAT(t.exception, HasSubstr("TypeError"));
  ASSERT_FALSE(t.frames.empty());
  EXPECT_EQ(t.frames.back().line, 3);
}

TEST(PythonTraceTest, ValuesAreCappedAndHostileOnesHarmless) {
  TraceOptions options;
  options.value_bytes = 40;
  const auto t = trace_python(
      "class Liar:\n    def __repr__(self):\n        raise SystemExit\n\ndef f():\n    a = 'x' * 100000\n    b = Liar()\n    c = [[[[[1]]]]] * 1000\n    return 1\n",
      TracedCall{"f", {}}, options);
  EXPECT_EQ(t.result, "1") << all(t);
  for (const auto& step : t.first) {
    for (const auto& [name, value] : step.changed) EXPECT_LE(value.size(), 60u) << name;
  }
}

TEST(PythonTraceTest, AProgramThatEndsItselfLeavesNoTrace) {
  const auto t = trace_python("import os\ndef f():\n    os._exit(0)\n", TracedCall{"f", {}});
  EXPECT_TRUE(t.first.empty());
  EXPECT_NE(t.error, "");
}

TEST(NativeTraceTest, ASanitizerReportNamesTheLine) {
  const auto t = trace(shared_sandbox(), {Language::c, "#include <stdio.h>\n#include <stdlib.h>\nint main(void) {\n  int n;\n  scanf(\"%d\", &n);\n  int* a = malloc(4 * 3);\n  a[n] = 1;\n  printf(\"%d\\n\", a[0]);\n  return 0;\n}\n"},
                       TracedRun{"5\n"});
  EXPECT_THAT(t.report, HasSubstr("heap-buffer-overflow")) << all(t);
  ASSERT_FALSE(t.frames.empty()) << t.report;
  EXPECT_EQ(t.frames.back().line, 7) << t.report;
  EXPECT_EQ(t.frames.back().function, "main");
}

TEST(NativeTraceTest, UndefinedBehaviourIsReportedWithItsLine) {
  const auto t = trace(shared_sandbox(), {Language::cpp, "#include <iostream>\nint main() {\n  int x = 2147483647, y;\n  std::cin >> y;\n  std::cout << x + y;\n}\n"}, TracedRun{"1\n"});
  EXPECT_THAT(t.report, HasSubstr("signed integer overflow")) << all(t);
  EXPECT_THAT(t.report, HasSubstr("main.cpp:5")) << all(t);
}

TEST(NativeTraceTest, ACppCallIsTracedToo) {
  const auto t = trace(shared_sandbox(), {Language::cpp, "#include <vector>\nint f(std::vector<int> v, int i) {\n  int* p = v.data();\n  return p[i];\n}\n"},
                       TracedCall{"f", {Value::list_of({Value::of(1)}), Value::of(4)}});
  EXPECT_THAT(t.report, HasSubstr("heap-buffer-overflow")) << all(t);
  ASSERT_FALSE(t.frames.empty()) << t.report;
  EXPECT_EQ(t.frames.back().file, "candidate.cpp");
  EXPECT_EQ(t.frames.back().line, 4);
}

TEST(JavaScriptTraceTest, AStackWithItsLines) {
  auto t = trace(shared_sandbox(), {Language::javascript, "function g(x) {\n  return x.y.z;\n}\nfunction f(x) {\n  return g(x);\n}\n"}, TracedCall{"f", {Value::of(1)}});
  EXPECT_THAT(t.exception, HasSubstr("TypeError")) << all(t);
  EXPECT_THAT(t.report, HasSubstr("at g (solution.js:2)  return x.y.z;"));
  t = trace(shared_sandbox(), {Language::javascript, "const f = () => { throw new Error('bad'); };\nf();\n"}, TracedRun{""});
  EXPECT_THAT(t.report, HasSubstr("Error: bad")) << all(t);
  EXPECT_THAT(t.report, HasSubstr("main.js:1"));
}

TEST(TraceTextTest, IsBoundedByLeavingOutItsMiddle) {
  Trace t;
  for (int i = 0; i < 1000; ++i) t.first.push_back({"line", i, 0, "f", "x = " + std::to_string(i), {}});
  t.steps = 1000;
  t.exception = "Error: the end";
  const std::string text = to_text(t, 500);
  EXPECT_LT(text.size(), 600u);
  EXPECT_THAT(text, HasSubstr("left out"));
  EXPECT_THAT(text, HasSubstr("the end"));
}

}  // namespace
}  // namespace fixpoint::sandbox
