#pragma once

#include "sandbox/check.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fixpoint::sandbox {

// What is run again, watched.
struct TracedCall {  // Python, JavaScript, C++: as in a CallCheck
  std::string entry_point;
  std::vector<Value> arguments;
  std::vector<std::pair<std::string, Value>> named = {};
};
struct TracedStatement {  // Python: a test's own line, such as TestResult::test ("assert f(1) == 2"), after the program
  std::string text;
};
struct TracedRun {  // the whole program, with this standard input
  std::string input;
};
using TraceSubject = std::variant<TracedCall, TracedStatement, TracedRun>;

struct TraceOptions {
  Limits limits = {.cpu = std::chrono::seconds(5), .wall = std::chrono::seconds(15)};
  std::size_t first_steps = 30;
  std::size_t last_steps = 30;
  std::size_t value_bytes = 120;   // of each variable's text
  std::size_t report_bytes = 4000; // of a sanitizer's report or a stack
};

// One event in the program's own text: a line with its effect ("line"), or an end of a call ("call", "return", "raise").
struct TraceStep {
  std::string event;
  std::int64_t line = 0;
  std::int64_t depth = 0;  // of calls within the program, from 0
  std::string function;
  std::string text;        // the source line
  std::vector<std::pair<std::string, std::string>> changed;  // variables that the line made or changed
};

// What really happened, bounded: a repair round feeds on it.
struct Trace {
  std::vector<TraceStep> first;
  std::vector<TraceStep> last;         // empty where `first` holds everything
  std::uint64_t steps = 0;             // all of them; steps - first - last were left out
  std::string result;                  // what the call returned, as text; empty for exceptions
  std::string exception;               // "ZeroDivisionError: division by zero"
  std::vector<SourceFrame> frames;     // in the program's text, outermost first
  std::string report;                  // C and C++: the sanitizer's report with source lines; JavaScript: the stack
  std::string limit;                   // which limit ended it, where one did
  std::string error;                   // why there is no trace
  Verdict verdict;

  [[nodiscard]] bool empty() const { return first.empty() && exception.empty() && report.empty(); }
};

// Python: every line with the variables that changed. C and C++: built with AddressSanitizer and UndefinedBehaviorSanitizer.
// JavaScript: the exception's stack. Other languages: what they print on standard error. Blocks.
[[nodiscard]] Trace trace(Sandbox& sandbox, const Program& program, const TraceSubject& subject, const TraceOptions& options = {},
                          std::stop_token stop = {});

// For people and models, at most `max_bytes` (its middle is left out first, and it says how much).
[[nodiscard]] std::string to_text(const Trace& trace, std::size_t max_bytes = 4000);

}  // namespace fixpoint::sandbox
