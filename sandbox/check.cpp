#include "sandbox/check.h"

#include "sandbox/detail/check/judge.h"
#include "sandbox/detail/check/literal_parser.h"

#include <algorithm>

namespace fixpoint::sandbox {
namespace {

constexpr std::size_t max_tests = 1'000'000;

// The last gate, the same for every kind of check: N of N, at least one, nothing wrong on the way.
void decide(CheckResult& result) {
  const bool all = std::all_of(result.tests.begin(), result.tests.end(),
                               [](const TestResult& test) { return test.outcome == TestOutcome::passed; });
  if (result.tests.empty() && result.error.empty()) result.error = "there is no test";
  result.passed = all && !result.tests.empty() && result.error.empty();
}

}  // namespace

CheckResult check(Sandbox& sandbox, const Program& program, const Check& what, const CheckOptions& options, std::stop_token stop) {
  detail::Judge judge{sandbox, program, options, stop};
  const auto too_many = [](std::size_t count) { return count > max_tests; };
  if (const auto* printed = std::get_if<PrintedCheck>(&what)) {
    too_many(printed->tests.size()) ? void(judge.result.error = "more than a million tests") : judge.printed(*printed);
  } else if (const auto* calls = std::get_if<CallCheck>(&what)) {
    too_many(calls->tests.size()) ? void(judge.result.error = "more than a million tests") : judge.calls(*calls);
  } else {
    judge.text(std::get<TextCheck>(what));
  }
  if (stop.stop_requested() && judge.result.error.empty()) judge.result.error = "cancelled";
  decide(judge.result);
  return std::move(judge.result);
}

std::optional<std::vector<CallTest>> parse_simple_asserts(std::string_view text, std::string_view entry_point) {
  detail::LiteralParser parser(text, false);
  std::vector<CallTest> tests;
  while (!parser.at_end()) {
    CallTest test;
    if (parser.word() != "assert") return std::nullopt;
    test.entry_point = parser.word();
    if (test.entry_point.empty() || (!entry_point.empty() && test.entry_point != entry_point) || !parser.take('(')) return std::nullopt;
    while (!parser.take(')')) {
      const auto before = parser.offset();
      const std::string keyword(parser.word());
      const bool named = !keyword.empty() && parser.looking_at('=');
      if (named) {
        parser.take('=');
      } else {
        parser.seek(before);
      }
      Value argument;
      if (!parser.value(argument, 0)) return std::nullopt;
      if (named) {
        test.named.emplace_back(keyword, std::move(argument));
      } else if (!test.named.empty()) {
        return std::nullopt;
      } else {
        test.arguments.push_back(std::move(argument));
      }
      if (!parser.take(',') && !parser.looking_at(')')) return std::nullopt;
    }
    if (!parser.take('=') || !parser.take('=')) return std::nullopt;
    Value expected;
    if (!parser.value(expected, 0)) return std::nullopt;
    test.expected = std::move(expected);
    // A statement ends with its line; a message or more of an expression is not for here.
    const std::string_view rest = parser.rest();
    const auto end = rest.find_first_not_of(" \t\r");
    if (end != rest.npos && rest[end] != '\n' && rest[end] != '#' && rest[end] != ';') return std::nullopt;
    parser.take(';');
    tests.push_back(std::move(test));
  }
  if (tests.empty()) return std::nullopt;
  return tests;
}

}  // namespace fixpoint::sandbox
