#pragma once

#include "sandbox/equality.h"
#include "sandbox/sandbox.h"
#include "sandbox/value.h"

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fixpoint::sandbox {

// Who decides that a program passed, from the strongest to the weakest. docs/sandbox.md says what each one withstands.
enum class CheckLevel : std::uint8_t {
  printed_output,   // one run for each test; what it printed is compared outside
  returned_values,  // the judge asks for one call at a time and compares the values outside
  separate_tests,   // the tests run in a jail of their own, without the program; calls and plain values cross
  in_process,       // the tests share the program's process: a program that is out to cheat can, in principle, lie
};
[[nodiscard]] std::string_view name(CheckLevel level);

// What is judged.
struct Program {
  Language language = Language::python;
  std::string source;
  std::vector<File> files = {};  // beside it in the working directory; the checks' own names win
};

struct PrintedTest {
  std::string input;
  std::string expected;
  std::vector<std::string> arguments = {};
};

// One call of `entry_point` and what it must give: a value, or an exception whose class (or a base of it) has this name.
struct CallTest {
  std::vector<Value> arguments;
  std::vector<std::pair<std::string, Value>> named = {};
  std::variant<Value, std::string> expected = Value{};
  std::string entry_point = {};  // where it is not the check's own
};

// Standard input in, standard output out.
struct PrintedCheck {
  std::vector<PrintedTest> tests;
  TextEquality equality = {};
};

// Python, JavaScript, and C++ (functions whose parameters and result are made of numbers, bool, char, strings, vectors, arrays,
// pairs, tuples, maps, sets and optionals; no overloads or templates).
struct CallCheck {
  std::string entry_point;
  std::vector<CallTest> tests;
  // Where given, it is run in a jail of its own on the same arguments and says what is expected; the tests' own `expected` are not read.
  std::optional<Program> reference = std::nullopt;
  Equality equality = {};
};

enum class Isolation : std::uint8_t {
  automatic,   // the strongest that the tests' text allows; the candidate has no say in it
  separate,    // separate_tests or an error
  in_process,
};

// Tests as text: `assert` statements, a `check(candidate)` function, unittest classes, test_ functions, in any mix (Python);
// a program that throws (JavaScript: node's assert) or fails an assert (C and C++).
// A list of `assert f(literals) == literal` is judged as a CallCheck.
struct TextCheck {
  std::string tests;
  std::string entry_point = {};  // what check() is given, and the only name that may not hide a builtin
  std::string module_name = "solution";  // under which tests may import the program
  Isolation isolation = Isolation::automatic;
  bool probe = true;  // the tests must also refuse a program that is certainly wrong, or nothing passes
};

using Check = std::variant<PrintedCheck, CallCheck, TextCheck>;

struct CheckOptions {
  Limits limits = {};  // of each jail: each printed test, or all calls together
  std::chrono::milliseconds call_wall{10'000};  // one call or one test may take this long: from one answer to the next
  bool stop_at_first_failure = false;
  std::size_t max_text_bytes = 2000;  // of each text in a result
};

// A line of the program (or of the tests) that an exception passed through, outermost first.
struct SourceFrame {
  std::string file;
  std::int64_t line = 0;
  std::string function;
  std::string text;
};

enum class TestOutcome : std::uint8_t {
  passed,
  wrong,    // another answer than the expected one
  raised,   // an exception
  limit,    // time, memory, output or another limit; CheckResult::verdicts says which
  crashed,  // the program ended, died or left the protocol instead of answering
  not_run,  // an earlier test ended the run
};
[[nodiscard]] std::string_view name(TestOutcome outcome);

struct TestResult {
  TestOutcome outcome = TestOutcome::not_run;
  std::string test;      // what was asked: a call, an input, a source line
  std::string got;       // as text, bounded; empty for passed tests
  std::string expected;  // likewise
  std::string message;   // an exception's class and text, a limit, how it crashed
  std::vector<SourceFrame> frames = {};
  std::optional<Value> value = std::nullopt;  // what was returned, where that is known and the test failed
};

struct CheckResult {
  bool passed = false;  // every test passed, at least one was there, and each jail came to a normal end
  CheckLevel level = CheckLevel::printed_output;
  std::vector<TestResult> tests;
  // The tests themselves could not be judged (empty, unreadable, they accept anything, the sandbox failed): never a pass, and
  // not the candidate's fault.
  std::string error;
  std::vector<std::string> notes;   // e.g. why a weaker level was taken
  std::vector<Verdict> verdicts;    // how the candidate's jail ended (printed tests: of the first that failed, else the last)
  std::chrono::microseconds cpu{0};  // of all jails together
  std::chrono::microseconds wall{0};

  [[nodiscard]] const TestResult* first_failure() const;
  [[nodiscard]] std::size_t passed_tests() const;
};

// Judges a program. Blocks; may be called from many threads at once. A stop request ends it with an error.
[[nodiscard]] CheckResult check(Sandbox& sandbox, const Program& program, const Check& what, const CheckOptions& options = {},
                                std::stop_token stop = {});

// `assert f(1, [2]) == 3` as a call test, for lists of them; nothing when any statement has another form.
[[nodiscard]] std::optional<std::vector<CallTest>> parse_simple_asserts(std::string_view text, std::string_view entry_point = {});

}  // namespace fixpoint::sandbox
