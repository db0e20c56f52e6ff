#include "sandbox/detail/check/judge.h"
#include "shared_sandbox.h"

#include <chrono>
#include <cmath>

namespace fixpoint::sandbox {
namespace {

Value literal(std::string_view text) {
  auto value = parse_python_literal(text);
  if (!value) throw std::runtime_error("no literal: " + std::string(text));
  return *value;
}

CallTest call(std::string_view arguments, std::string_view expected) {
  return {.arguments = literal(arguments).items, .expected = literal(expected)};
}

CheckResult check_python(const std::string& source, const Check& what, const CheckOptions& options = {}) {
  return check(shared_sandbox(), {Language::python, source}, what, options);
}

CheckResult check_text(const std::string& source, const std::string& tests, const std::string& entry_point = "f", Isolation isolation = Isolation::automatic) {
  return check_python(source, TextCheck{.tests = tests, .entry_point = entry_point, .isolation = isolation});
}

TEST(PrintedCheckTest, EveryTestRunsOnItsOwn) {
  const std::string source = "n = int(input())\nprint(n * 2)\n";
  auto result = check_python(source, PrintedCheck{.tests = {{"2\n", "4"}, {"5\n", "10\n"}}});
  EXPECT_TRUE(result.passed) << explain(result);
  EXPECT_EQ(result.level, CheckLevel::printed_output);
  result = check_python(source, PrintedCheck{.tests = {{"2\n", "4"}, {"5\n", "11"}, {"x\n", ""}, {"1\n", "2"}}});
  ASSERT_EQ(result.tests.size(), 4u);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.passed_tests(), 2u);
  EXPECT_EQ(result.tests[1].outcome, TestOutcome::wrong);
  EXPECT_EQ(result.tests[1].got, "10");
  EXPECT_EQ(result.tests[2].outcome, TestOutcome::crashed);
  EXPECT_NE(result.tests[2].got.find("ValueError"), std::string::npos);
}

TEST(PrintedCheckTest, ALimitIsNamed) {
  CheckOptions options;
  options.limits.cpu = std::chrono::milliseconds(300);
  const auto result = check_python("while True: pass", PrintedCheck{.tests = {{"", ""}}}, options);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.tests[0].outcome, TestOutcome::limit) << explain(result);
}

TEST(PrintedCheckTest, WorksInOtherLanguages) {
  const PrintedCheck doubled{.tests = {{"2\n", "4"}, {"21\n", "42"}}};
  auto& sandbox = shared_sandbox();
  auto result = check(sandbox, {Language::cpp, "#include <iostream>\nint main() { int n; std::cin >> n; std::cout << n * 2 << '\\n'; }"}, doubled);
  EXPECT_TRUE(result.passed) << explain(result);
  result = check(sandbox, {Language::bash, "read n; echo $((n * 2))"}, doubled);
  EXPECT_TRUE(result.passed) << explain(result);
  result = check(sandbox, {Language::cpp, "int main() { oops }"}, doubled);
  EXPECT_FALSE(result.passed);
  EXPECT_NE(result.tests[0].got.find("oops"), std::string::npos) << explain(result);
  EXPECT_EQ(result.tests[1].outcome, TestOutcome::not_run);
}

TEST(CallCheckTest, ValuesOfEveryKindComeBackAsTheyAre) {
  CallCheck what{.entry_point = "f"};
  for (const char* text : {"None", "True", "-5", "123456789012345678901234567890", "0.1", "float('inf')", "-0.0", "'é\\x00😀'", "b'\\xff\\x00'", "[1, [2.5, None]]",
                           "(1,)", "{'a': {1: (2, 3)}}", "{1, 2}", "frozenset({3})", "(1+2j)", "Decimal('2.50')", "()", "''"}) {
    what.tests.push_back(call("(" + std::string(text) + ",)", text));
  }
  const auto result = check_python("def f(x):\n    return x\n", what);
  EXPECT_TRUE(result.passed) << explain(result);
  EXPECT_EQ(result.level, CheckLevel::returned_values);
}

TEST(CallCheckTest, HugeIntegersAndLongTextsCross) {
  CallCheck what{.entry_point = "f"};
  Value big;
  big.kind = Value::Kind::integer;
  big.text = "0x1" + std::string(5000, '0');
  what.tests.push_back({.arguments = {Value::of(20000)}, .expected = big});
  auto result = check_python("def f(n):\n    return 2 ** n\n", what);
  EXPECT_TRUE(result.passed) << explain(result);
  what.tests = {{.arguments = {Value::of(std::string(3'000'000, 'a'))}, .expected = Value::of(std::string(3'000'000, 'a') + "b")}};
  result = check_python("def f(s):\n    return s + 'b'\n", what);
  EXPECT_TRUE(result.passed) << explain(result).substr(0, 500);
}

TEST(CallCheckTest, AFailureSaysWhatWasCalledAndWhatCame) {
  const auto result = check_python("def f(a, b=0):\n    return a - b\n", CallCheck{.entry_point = "f", .tests = {call("(1,)", "1"), call("(5, 3)", "8")}});
  EXPECT_FALSE(result.passed);
  ASSERT_EQ(result.passed_tests(), 1u) << explain(result);
  EXPECT_EQ(result.tests[1].test, "f(5, 3)");
  EXPECT_EQ(result.tests[1].got, "2");
  EXPECT_EQ(result.tests[1].expected, "8");
}

TEST(CallCheckTest, ExceptionsAreOutcomesWithTheirFrames) {
  CallCheck what{.entry_point = "f", .tests = {call("(1,)", "1")}};
  what.tests.push_back({.arguments = {Value::of(0)}, .expected = std::string("ArithmeticError")});
  what.tests.push_back({.arguments = {Value::of(0)}, .expected = std::string("KeyError")});
  const auto result = check_python("def g(x):\n    return 1 // x\n\ndef f(x):\n    return g(x)\n", what);
  EXPECT_EQ(result.tests[0].outcome, TestOutcome::passed) << explain(result);
  EXPECT_EQ(result.tests[1].outcome, TestOutcome::passed);
  const TestResult& raised = result.tests[2];
  EXPECT_EQ(raised.outcome, TestOutcome::raised);
  EXPECT_EQ(raised.expected, "raises KeyError");
  EXPECT_NE(raised.message.find("ZeroDivisionError"), std::string::npos);
  ASSERT_EQ(raised.frames.size(), 2u);
  EXPECT_EQ(raised.frames[0].line, 5);
  EXPECT_EQ(raised.frames[1].line, 2);
  EXPECT_EQ(raised.frames[1].function, "g");
  EXPECT_EQ(raised.frames[1].text, "return 1 // x");
}

TEST(CallCheckTest, AReferenceInItsOwnJailSaysWhatIsExpected) {
  CallCheck what{.entry_point = "f", .tests = {call("([3, 1, 2],)", "None"), call("([],)", "None")}};
  what.reference = Program{Language::python, "def f(xs):\n    return sorted(xs)\n"};
  EXPECT_TRUE(check_python("def f(xs):\n    xs.sort()\n    return xs\n", what).passed);
  auto result = check_python("def f(xs):\n    return xs\n", what);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.tests[0].expected, "[1, 2, 3]");
  what.reference->source = "def f(xs):\n    raise SystemExit\n";
  EXPECT_FALSE(check_python("def f(xs):\n    raise SystemExit\n", CallCheck{.entry_point = "f", .tests = {}, .reference = what.reference}).passed);
  what.reference->source = "import os\ndef f(xs):\n    os._exit(0)\n";
  result = check_python("def f(xs):\n    return xs\n", what);
  EXPECT_NE(result.error, "") << explain(result);
}

TEST(CallCheckTest, ACallThatTakesTooLongEndsTheRun) {
  CheckOptions options;
  options.call_wall = std::chrono::milliseconds(1500);
  const auto result = check_python("def f(x):\n    while x: pass\n    return 1\n",
                                   CallCheck{.entry_point = "f", .tests = {call("(0,)", "1"), call("(1,)", "1"), call("(0,)", "1")}}, options);
  EXPECT_EQ(result.tests[0].outcome, TestOutcome::passed) << explain(result);
  EXPECT_EQ(result.tests[1].outcome, TestOutcome::limit);
  EXPECT_EQ(result.tests[2].outcome, TestOutcome::not_run);
  EXPECT_FALSE(result.passed);
}

TEST(CallCheckTest, QuestionsThatRunAheadAreAnsweredInOrderWhateverTheirSize) {
  CallCheck what{.entry_point = "f", .tests = {}};
  for (int i = 0; i < 400; ++i) {
    const std::string text(i % 50 == 7 ? 100'000 : i % 10 == 3 ? 5'000 : 5, 'a');
    what.tests.push_back({.arguments = {Value::of(i), Value::of(text)}, .expected = Value::tuple_of({Value::of(i), Value::of(text + text)})});
  }
  const char* source = "calls = []\ndef f(i, s):\n    calls.append(i)\n    return (len(calls) - 1, s + s)\n";
  const auto result = check_python(source, what);
  EXPECT_TRUE(result.passed) << explain(result).substr(0, 1000);
}

TEST(CallCheckTest, AFailureIsTheTestsOwnThoughLaterOnesWereAsked) {
  CallCheck what{.entry_point = "f", .tests = {}};
  for (int i = 0; i < 60; ++i) what.tests.push_back({.arguments = {Value::of(i)}, .expected = Value::of(i)});
  for (const bool stop : {false, true}) {
    CheckOptions options;
    options.stop_at_first_failure = stop;
    auto result = check_python("def f(i):\n    return -1 if i == 20 else i\n", what, options);
    EXPECT_EQ(result.passed_tests(), stop ? 20u : 59u) << explain(result).substr(0, 1000);
    EXPECT_EQ(result.tests[20].outcome, TestOutcome::wrong);
    EXPECT_EQ(result.tests[21].outcome, stop ? TestOutcome::not_run : TestOutcome::passed);
    result = check_python("import os\ndef f(i):\n    if i == 20: os._exit(0)\n    return i\n", what, options);
    EXPECT_EQ(result.passed_tests(), 20u);
    EXPECT_EQ(result.tests[20].outcome, TestOutcome::crashed);
    EXPECT_EQ(result.tests[21].outcome, TestOutcome::not_run);
  }
}

TEST(CallCheckTest, AnEndThatDoesNotComeInTimeIsALimitAndNoCrash) {
  CheckOptions options;
  options.call_wall = std::chrono::milliseconds(1500);
  const auto result = check_python("import sys, time\nclass Out:\n    def write(self, text): pass\n    def flush(self): time.sleep(600)\nsys.stdout = Out()\ndef f(x):\n    return x\n",
                                   CallCheck{.entry_point = "f", .tests = {call("(1,)", "1")}}, options);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.tests[0].outcome, TestOutcome::limit) << explain(result);
}

TEST(CallCheckTest, AWrongLastAnswerStaysOneHoweverTheProgramEnds) {
  const auto result = check_python("import os, sys\nclass Out:\n    def write(self, text): pass\n    def flush(self): os._exit(3)\nsys.stdout = Out()\ndef f(x):\n    return x\n",
                                   CallCheck{.entry_point = "f", .tests = {call("(1,)", "1"), call("(1,)", "2")}});
  EXPECT_EQ(result.tests[0].outcome, TestOutcome::passed);
  EXPECT_EQ(result.tests[1].outcome, TestOutcome::wrong) << explain(result);
}

TEST(ConversationTest, AQuestionThatHadToWaitIsSentInTheTimeOfItsOwnCall) {
  using Clock = std::chrono::steady_clock;
  const Program program{.source = "def f(text):\n    return len(text)\n"};
  const auto later = Clock::now() + std::chrono::minutes(1);
  detail::Conversation line(shared_sandbox(), *detail::driver_job(program, "f", {}), detail::max_message_bytes, {});
  ASSERT_TRUE(detail::load(line, program, "solution", false, later));
  for (const std::size_t size : {1u, 4u << 20}) {
    const Value nonce = detail::fresh_nonce();
    const std::vector<Value> arguments{Value::of(std::string(size, 'a'))};
    line.ask_ahead(detail::message_bytes(detail::CallQuestion{"f", arguments, {}, true}, nonce), nonce);
  }
  // The first call has no time left when its answer comes.
  auto answer = line.next_answer(Clock::time_point());
  while (!answer && answer.error() == detail::Silence::late && Clock::now() < later) answer = line.next_answer(Clock::time_point());
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(to_text(answer->value), "1");
  answer = line.next_answer(later);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(to_text(answer->value), "4194304");
}

// Whichever form carries them: that of the interpreter, or the wire's own for what the interpreter's would not tell apart.
TEST(CallCheckTest, ResultsArriveAsTheyAre) {
  const std::string source =
      "import array, collections, decimal, enum\n"
      "class Text(str): pass\n"
      "class Colour(enum.IntEnum):\n    red = 3\n"
      "results = [[1, 2.0, True, None, 'scar'], (2 ** 31, -2 ** 63, 2 ** 64, 10 ** 3000), {'s': {'c': (1,)}}, {'a'}, b'code', bytearray(b'abc'),\n"
      "           array.array('b', b'abc'), [bytearray(b'sun')], Text('t'), Colour.red, collections.deque([1]), decimal.Decimal('1.5'), float('inf'),\n"
      "           1j, '\\ud800', [[[]]], ..., memoryview(b'abc'), (lambda: 1).__code__, [(lambda: 1).__code__], range(3),\n"
      "           StopIteration, [1, StopIteration], {float('inf'): [b'']}, frozenset({1})]\n"
      "def deep(n):\n    value = []\n    for _ in range(n):\n        value = [value]\n    return value\n"
      "within = []\nwithin += [within, within]\nresults += [deep(100), deep(300), deep(3000), within]\n"
      "def f(i):\n    return results[i]\n";
  const std::vector<std::string> wires = {"l5:i1:1f6:0x1p+1TNs4:scar", "t4:i10:2147483648i20:-9223372036854775808i20:18446744073709551616i2494:0x371c933511046bd4",
                                          "d1:s1:sd1:s1:ct1:i1:1", "S1:s1:a", "b4:code", "n9:bytearrayb3:abc", "an object of class array is no plain value",
                                          "l1:n9:bytearrayb3:sun", "n13:subclass:Texts1:t", "n15:subclass:Colouri1:3", "n5:dequel1:i1:1", "D3:1.5", "f3:inf",
                                          "cf6:0x0p+0f6:0x1p+0", "s3:\xed\xa0\x80", "l1:l1:l0:", "n8:constants8:Ellipsis", "an object of class memoryview is no plain value",
                                          "an object of class code is no plain value", "an object of class code is no plain value", "n5:ranget3:i1:0i1:3i1:1", "n4:types13:StopIteration",
                                          "l2:i1:1n4:types13:StopIteration", "d1:f3:infl1:b0:", "z1:i1:1", "l1:l1:l1:", "nested too deeply", "nested too deeply",
                                          "nested too deeply"};
  CallCheck what{.entry_point = "f"};
  for (std::size_t i = 0; i < wires.size(); ++i) what.tests.push_back({.arguments = {Value::of(static_cast<int>(i))}, .expected = Value::of("none of them")});
  const auto result = check_python(source, what);
  ASSERT_EQ(result.tests.size(), wires.size()) << explain(result);
  for (std::size_t i = 0; i < wires.size(); ++i) {
    const TestResult& test = result.tests[i];
    EXPECT_EQ(test.outcome, TestOutcome::wrong) << i << ' ' << explain(result);
    const std::string wire = test.value ? encode(*test.value) : test.message;
    EXPECT_NE(wire.find(wires[i]), std::string::npos) << i << ' ' << wire.substr(0, 200);
  }
}

TEST(CallCheckTest, NoTestsIsNoPass) {
  EXPECT_FALSE(check_python("def f(): pass", CallCheck{.entry_point = "f"}).passed);
  EXPECT_FALSE(check_python("", PrintedCheck{}).passed);
  EXPECT_FALSE(check_text("def f(): pass", "").passed);
  EXPECT_FALSE(check_text("def f(): pass", "x = 1").passed);
  EXPECT_FALSE(check_text("def f(): pass", "def check(candidate):\n    pass\n").passed);
}

TEST(CallCheckTest, PrintingFunctionsAreJudgedByWhatTheyReturn) {
  const auto result = check_python("def f(x):\n    print('x' * 3_000_000)\n    return x\n", CallCheck{.entry_point = "f", .tests = {call("(1,)", "1"), call("(2,)", "2")}});
  EXPECT_TRUE(result.passed) << explain(result).substr(0, 1000);
  EXPECT_TRUE(result.verdicts[0].standard_output.truncated);
}

TEST(CallCheckTest, GeneratorsDoNotEqualLists) {
  EXPECT_FALSE(check_python("def f(x):\n    yield x\n", CallCheck{.entry_point = "f", .tests = {call("(1,)", "[1]")}}).passed);
}

TEST(CallCheckTest, JavaScriptFunctionsAreCalledToo) {
  const CallCheck what{.entry_point = "f", .tests = {call("([3, 1, 2], 'x')", "['x', 3]"), call("([], '')", "['', 0]")}};
  const auto js = [&](const char* source) { return check(shared_sandbox(), {Language::javascript, source}, what); };
  auto result = js("const f = (xs, s) => [s, xs.length];");
  EXPECT_TRUE(result.passed) << explain(result);
  result = js("async function f(xs, s) { await new Promise((r) => setTimeout(r, 1)); return [s, xs.length]; }\nmodule.exports = { f };");
  EXPECT_TRUE(result.passed) << explain(result);
  result = js("function g(xs) {\n  return xs.nothing.length;\n}\nfunction f(xs, s) {\n  return g(xs);\n}");
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.tests[0].outcome, TestOutcome::raised) << explain(result);
  ASSERT_EQ(result.tests[0].frames.size(), 2u) << explain(result);
  EXPECT_EQ(result.tests[0].frames[1].line, 2);
  EXPECT_EQ(result.tests[0].frames[1].text, "return xs.nothing.length;");
  result = js("function f( {");
  EXPECT_EQ(result.tests[0].outcome, TestOutcome::raised) << explain(result);
  EXPECT_NE(result.tests[0].message.find("SyntaxError"), std::string::npos) << explain(result);
}

TEST(CallCheckTest, JavaScriptNumbersKeepTheirValues) {
  CallCheck what{.entry_point = "f"};
  for (const char* text : {"0.1", "-0.0", "1e300", "5e-324", "9007199254740991", "float('inf')", "123456789012345678901234567890"}) {
    what.tests.push_back(call("(" + std::string(text) + ",)", text));
  }
  const auto result = check(shared_sandbox(), {Language::javascript, "function f(x) { return x; }"}, what);
  EXPECT_TRUE(result.passed) << explain(result);
}

TEST(CallCheckTest, CppFunctionsAreCalledThroughTheirOwnTypes) {
  const CallCheck what{.entry_point = "f", .tests = {call("([3, 1, 2], 'ab', {'k': (1, 2.5)})", "[('ab', 6), ('k', 1)]")}};
  const auto result = check(shared_sandbox(),
                            {Language::cpp,
                             "#include <map>\n#include <string>\n#include <vector>\nusing namespace std;\n"
                             "vector<pair<string, long>> f(vector<int>& xs, const string& s, map<string, tuple<int, double>> m) {\n"
                             "  long sum = 0;\n  for (int x : xs) sum += x;\n"
                             "  vector<pair<string, long>> out{{s, sum}};\n  for (auto& [k, v] : m) out.push_back({k, get<0>(v)});\n  return out;\n}\n"
                             "int main() { return 1; }\n"},
                            what);
  EXPECT_TRUE(result.passed) << explain(result);
  const auto thrown = check(shared_sandbox(), {Language::cpp, "#include <vector>\nint f(std::vector<int> v) { return v.at(3); }"},
                            CallCheck{.entry_point = "f", .tests = {call("([1],)", "1"), call("([1, 2, 3, 4],)", "4")}});
  EXPECT_EQ(thrown.tests[0].outcome, TestOutcome::raised) << explain(thrown);
  EXPECT_NE(thrown.tests[0].message.find("out_of_range"), std::string::npos) << explain(thrown);
  EXPECT_EQ(thrown.tests[1].outcome, TestOutcome::passed);
}

TEST(TextCheckTest, ListsOfPlainAssertsAreComparedOutside) {
  auto result = check_text("def f(x):\n    return x + 1\n", "assert f(1) == 2\nassert f(2) == 3\n");
  EXPECT_TRUE(result.passed) << explain(result);
  EXPECT_EQ(result.level, CheckLevel::returned_values);
}

TEST(TextCheckTest, OtherAssertsRunInAJailOfTheirOwn) {
  const char* source = "def f(xs):\n    return list(reversed(xs))\n";
  auto result = check_text(source, "xs = [1, 2]\nassert set(f(xs)) == {1, 2}\nassert f([1, 2])[0] == 2, 'first'\nassert f([3]) == [4]\nassert not f([])\n");
  EXPECT_EQ(result.level, CheckLevel::separate_tests) << explain(result);
  ASSERT_EQ(result.tests.size(), 4u) << explain(result);
  EXPECT_EQ(result.passed_tests(), 3u) << explain(result);
  EXPECT_EQ(result.tests[2].outcome, TestOutcome::wrong);
  EXPECT_EQ(result.tests[2].test, "assert f([3]) == [4]");
  EXPECT_EQ(result.tests[2].got, "[3]");
  EXPECT_EQ(result.tests[2].expected, "[4]");
}

TEST(TextCheckTest, CheckFunctionsRunInAJailOfTheirOwn) {
  const char* tests = "METADATA = {}\n\ndef check(candidate):\n    assert candidate(1) == 2\n    for i in range(100):\n        assert candidate(i) == i + 1\n";
  auto result = check_text("def f(x):\n    return x + 1\n", tests);
  EXPECT_TRUE(result.passed) << explain(result);
  EXPECT_EQ(result.level, CheckLevel::separate_tests);
  result = check_text("def f(x):\n    return 2\n", tests);
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.tests[0].got, "2");
  EXPECT_EQ(result.tests[0].expected, "1");
  result = check_text("def f(x):\n    return [][x]\n", tests);
  EXPECT_EQ(result.tests[0].outcome, TestOutcome::raised) << explain(result);
  EXPECT_EQ(result.tests[0].message, "IndexError: list index out of range");
  EXPECT_EQ(result.tests[0].frames.back().line, 2);
}

TEST(TextCheckTest, UnittestClassesImportTheProgram) {
  const char* tests =
      "import unittest\nfrom solution import add\n\nclass T(unittest.TestCase):\n    def setUp(self):\n        self.x = 1\n"
      "    def test_one(self):\n        self.assertEqual(add(self.x, 2), 3)\n    def test_two(self):\n        with self.assertRaises(TypeError):\n"
      "            add(1, 'a')\n    def test_three(self):\n        self.assertEqual(add(1, 1), 3)\n\nif __name__ == '__main__':\n    unittest.main()\n";
  const auto result = check_text("def add(a, b):\n    return a + b\n", tests, "");
  EXPECT_EQ(result.level, CheckLevel::separate_tests) << explain(result);
  ASSERT_EQ(result.tests.size(), 3u) << explain(result);
  EXPECT_EQ(result.passed_tests(), 2u) << explain(result);
  EXPECT_EQ(result.first_failure()->test, "T.test_three");
  EXPECT_NE(result.first_failure()->message.find("2 != 3"), std::string::npos) << explain(result);
}

TEST(TextCheckTest, ObjectsOfTheProgramsClassesTakePart) {
  const char* source =
      "class Stack:\n    def __init__(self):\n        self.items = []\n    def push(self, x):\n        self.items.append(x)\n        return self\n"
      "    def pop(self):\n        return self.items.pop()\n    def __len__(self):\n        return len(self.items)\n    def __eq__(self, o):\n"
      "        return isinstance(o, Stack) and self.items == o.items\n\ndef merge(a, b):\n    s = Stack()\n    s.items = a.items + b.items\n    return s\n";
  const char* tests =
      "s = Stack()\ns.push(1).push(2)\nassert len(s) == 2\nassert s.pop() == 2\nassert s.items == [1]\nassert merge(s, s) == Stack().push(1).push(1)\n"
      "assert merge(s, s) != 5\nassert isinstance(s, Stack)\n";
  const auto result = check_text(source, tests, "");
  EXPECT_TRUE(result.passed) << explain(result);
  EXPECT_EQ(result.level, CheckLevel::separate_tests);
  EXPECT_FALSE(result.notes.empty());
}

TEST(TextCheckTest, ArgumentsThatAreChangedInPlaceAreChangedForTheTestsToo) {
  const auto result = check_text("def f(xs):\n    xs.append(1)\n", "xs = []\nf(xs)\nf(xs)\nassert xs == [1, 1]\n");
  EXPECT_TRUE(result.passed) << explain(result);
}

TEST(TextCheckTest, IteratorsAndViewsCross) {
  EXPECT_TRUE(check_text("def f(n):\n    return (i * i for i in range(n))\n", "assert list(f(3)) == [0, 1, 4]\n").passed);
  EXPECT_TRUE(check_text("def f(d):\n    return d.keys()\n", "assert sorted(f({2: 1, 1: 1})) == [1, 2]\n").passed);
  EXPECT_TRUE(check_text("from collections import Counter\ndef f(s):\n    return Counter(s)\n", "assert f('aab').most_common(1) == [('a', 2)]\n").passed);
}

TEST(TextCheckTest, TestsThatNeedTheProgramInsideAreLabelled) {
  const char* tests = "from unittest.mock import patch\nimport solution\ndef test_it():\n    with patch('solution.g', return_value=5):\n        assert solution.f() == 6\n";
  auto result = check_text("def g():\n    return 1\ndef f():\n    return g() + 1\n", tests, "");
  EXPECT_TRUE(result.passed) << explain(result);
  EXPECT_EQ(result.level, CheckLevel::in_process);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes[0].find("unittest.mock"), std::string::npos);
  result = check_python("def f(): return 1", TextCheck{.tests = tests, .isolation = Isolation::separate});
  EXPECT_NE(result.error, "") << explain(result);
}

TEST(TextCheckTest, InsideAFailureHasItsValues) {
  const auto result = check_text("def f(x):\n    return x\n", "assert f(1) == 1\nassert f(2) == 3\n", "f", Isolation::in_process);
  EXPECT_EQ(result.level, CheckLevel::in_process);
  ASSERT_EQ(result.tests.size(), 2u) << explain(result);
  EXPECT_EQ(result.tests[0].outcome, TestOutcome::passed);
  EXPECT_EQ(result.tests[1].got, "2");
  EXPECT_FALSE(result.passed);
}

TEST(TextCheckTest, TestsThatAcceptAnythingAreAnError) {
  auto result = check_text("def f(x):\n    return x\n", "def check(candidate):\n    try:\n        assert candidate(1) == 1\n    except Exception:\n        pass\n");
  EXPECT_FALSE(result.passed);
  EXPECT_NE(result.error, "") << explain(result);
  result = check_text("def f(x):\n    return x\n", "assert f(1) == 1 or True\n");
  EXPECT_FALSE(result.passed) << explain(result);
}

TEST(TextCheckTest, UnreadableTestsAreAnErrorAndNotTheProgramsFault) {
  const auto result = check_text("def f(): pass\n", "assert f( ==\n");
  EXPECT_FALSE(result.passed);
  EXPECT_NE(result.error.find("SyntaxError"), std::string::npos) << explain(result);
}

TEST(TextCheckTest, AProgramThatDoesNotLoadFails) {
  const auto result = check_text("def f(x):\n  return (\n", "assert list(f(1)) == [1]\n");
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.error, "");
  EXPECT_NE(result.tests[0].message.find("SyntaxError"), std::string::npos) << explain(result);
}

TEST(TextCheckTest, AMissingFunctionFails) {
  auto result = check_text("x = 1\n", "assert f(1) == 2\n");
  EXPECT_NE(result.tests[0].message.find("NameError"), std::string::npos) << explain(result);
  result = check_text("x = 1\n", "assert list(f(1)) == 2\n");
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.error, "") << explain(result);
}

TEST(TextCheckTest, JavaScriptTestsRunApart) {
  const char* tests = "const assert = require('node:assert');\nfunction test() {\n  let candidate = f;\n  assert.deepEqual(candidate([1, 2]), [2, 1]);\n}\ntest();\n";
  const auto js = [&](const char* source) {
    return check(shared_sandbox(), {Language::javascript, source}, TextCheck{.tests = tests, .entry_point = "f"});
  };
  auto result = js("function f(xs) { return xs.slice().reverse(); }");
  EXPECT_TRUE(result.passed) << explain(result);
  EXPECT_EQ(result.level, CheckLevel::separate_tests);
  result = js("function f(xs) { return xs; }");
  EXPECT_FALSE(result.passed);
  EXPECT_EQ(result.tests[0].got, "[ 1, 2 ]") << explain(result);
  EXPECT_FALSE(js("process.exit(0)").passed);
  result = check(shared_sandbox(), {Language::javascript, "const f = (x) => x;"},
                 TextCheck{.tests = "console.assert(f(1) === 1); console.assert(f(2) === 3);", .entry_point = "f", .isolation = Isolation::in_process});
  EXPECT_FALSE(result.passed) << explain(result);
  EXPECT_EQ(result.level, CheckLevel::in_process);
}

TEST(TextCheckTest, CppAndBashTestsMustComeToTheirEnd) {
  const TextCheck cpp{.tests = "#include <cassert>\nint main() { assert(f(2) == 4); }\n"};
  auto result = check(shared_sandbox(), {Language::cpp, "int f(int x) { return 2 * x; }\n"}, cpp);
  EXPECT_TRUE(result.passed) << explain(result);
  EXPECT_EQ(result.level, CheckLevel::in_process);
  result = check(shared_sandbox(), {Language::cpp, "int f(int x) { return 3 * x; }\n"}, cpp);
  EXPECT_FALSE(result.passed);
  EXPECT_NE(result.tests[0].got.find("f(2) == 4"), std::string::npos) << explain(result);
  result = check(shared_sandbox(), {Language::cpp, "#include <cstdlib>\nint f(int) { std::exit(0); }\n"}, cpp);
  EXPECT_FALSE(result.passed) << explain(result);
  const TextCheck bash{.tests = "[[ $(f 2) = 4 ]] || exit 1\n"};
  result = check(shared_sandbox(), {Language::bash, "f() { echo $(( $1 * 2 )); }\n"}, bash);
  EXPECT_TRUE(result.passed) << explain(result);
  EXPECT_FALSE(check(shared_sandbox(), {Language::bash, "f() { echo 5; }\n"}, bash).passed);
  EXPECT_FALSE(check(shared_sandbox(), {Language::bash, "exit 0\n"}, bash).passed);
}

TEST(TextCheckTest, RustTestsMustComeToTheirEnd) {
  if (shared_sandbox().toolchains().find(Language::rust) == nullptr) GTEST_SKIP() << "no Rust";
  const TextCheck tests{.tests = "fn main() { assert_eq!(f(2), 4); }\n"};
  const auto judged = [&](const std::string& source) { return check(shared_sandbox(), {Language::rust, source}, tests); };
  const auto right = judged("#![allow(unused)]\nuse std::collections::HashMap;\nfn f(x: i32) -> i32 { 2 * x }\n");
  EXPECT_TRUE(right.passed) << explain(right);
  EXPECT_TRUE(right.notes.empty());
  EXPECT_FALSE(judged("fn f(x: i32) -> i32 { 3 * x }\n").passed);
  EXPECT_FALSE(judged("fn f(_x: i32) -> i32 { std::process::exit(0) }\n").passed);
  const auto harmless = judged("macro_rules! assert_eq { ($($all:tt)*) => {} }\nfn f(_x: i32) -> i32 { 0 }\n");
  ASSERT_FALSE(harmless.passed);
  EXPECT_NE(harmless.tests[0].got.find("assertion"), std::string::npos) << explain(harmless);
  EXPECT_FALSE(judged("fn f(_x: i32) -> i32 { 0 }\nfn main() {}\n#[cfg(any())]\n").passed);
  const auto reader = judged("fn f(_x: i32) -> i32 { if std::path::Path::new(\"candidate.rs\").exists() { 4 } else { 0 } }\n");
  ASSERT_FALSE(reader.passed);
  EXPECT_NE(reader.tests[0].got.find("assertion"), std::string::npos) << explain(reader);
}

TEST(TextCheckTest, JavaTestsRunWithAssertionsAndMustComeToTheirEnd) {
  if (shared_sandbox().toolchains().find(Language::java) == nullptr) GTEST_SKIP() << "no Java";
  const TextCheck tests{.tests = "  public static void main(String[] arguments) { assert f(2) == 4; }\n}\n"};
  const auto judged = [&](const std::string& body) {
    return check(shared_sandbox(), {Language::java, "import java.util.*;\npublic class Problem {\n  static class Pair {}\n  static int f(int x) { " + body + " }\n"}, tests);
  };
  const auto right = judged("return 2 * x;");
  EXPECT_TRUE(right.passed) << explain(right);
  EXPECT_TRUE(right.notes.empty());
  const auto wrong = judged("return 3 * x;");
  EXPECT_FALSE(wrong.passed);
  EXPECT_NE(wrong.tests[0].got.find("AssertionError"), std::string::npos) << explain(wrong);
  EXPECT_FALSE(judged("System.exit(0); return 4;").passed);
  const auto other_main = [&](const std::string& name) {
    return check(shared_sandbox(), {Language::java, "class " + name + " { public static void main(String[] arguments) {} }\nclass Problem {\n  static int f(int x) { return 0; }\n"}, tests);
  };
  EXPECT_FALSE(other_main("Aside").passed);
  EXPECT_FALSE(other_main("Main").passed);
  EXPECT_FALSE(judged("return new java.io.File(\"candidate/Problem.java\").exists() ? 4 : 0;").passed);
  const auto own_main = check(shared_sandbox(), {Language::java, "public class Main {\n  static int f(int x) { return 2 * x; }\n"}, tests);
  EXPECT_TRUE(own_main.passed) << explain(own_main);
  const auto tests_main = check(shared_sandbox(), {Language::java, "class Problem {\n  static int f(int x) { return 2 * x; }\n}\n"},
                                TextCheck{.tests = "public class Main {\n  public static void main(String[] arguments) { assert Problem.f(2) == 4; }\n}\n"});
  EXPECT_TRUE(tests_main.passed) << explain(tests_main);
}

TEST(TextCheckTest, AJavaProgramCannotHideItsTestsOrTurnTheirAssertionsOff) {
  if (shared_sandbox().toolchains().find(Language::java) == nullptr) GTEST_SKIP() << "no Java";
  const TextCheck tests{.tests = "  public static void main(String[] arguments) { assert f(2) == 4; }\n}\n"};
  const auto expect_refused = [&](const std::string& head, const char* why) {
    const auto result = check(shared_sandbox(), {Language::java, head + "\n  static int f(int x) { return 0; }\n"}, tests);
    ASSERT_FALSE(result.passed) << head;
    EXPECT_NE(result.tests[0].got.find(why), std::string::npos) << explain(result);
  };
  const std::string quiet = "class Quiet { public static void main(java.lang.String[] arguments) {} }\n";
  expect_refused(quiet + "class Tests$ {", "more than one main");
  expect_refused(quiet + "class Problem {\n  static class String {}", "more than one main");
  expect_refused("class Base { static { Base.class.getClassLoader().clearAssertionStatus(); } }\nclass Problem extends Base {", "turned assertions off");
}

}  // namespace
}  // namespace fixpoint::sandbox
