#include "evals/detail/task_checks.h"

#include <algorithm>

#include "evals/datasets/formats.h"
#include "evals/detail/check_asserts.h"
#include "evals/detail/plus_oracle.h"

namespace fixpoint::evals::detail {

using sandbox::CallCheck;
using sandbox::CallTest;
using sandbox::Value;

sandbox::TextCheck text_check(const Task& task, const CheckFunction& tests) {
  return {.tests = check_as_asserts(tests.source, task.entry_point).value_or(tests.source), .entry_point = task.entry_point, .probe = false};
}

sandbox::TextCheck text_check(const Task& task, const Asserts& tests) {
  std::string text = tests.setup;
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  for (const std::string& statement : tests.statements) text += statement + "\n";
  return {.tests = std::move(text), .entry_point = task.entry_point, .probe = false};
}

namespace {

/// "assert [not] NAME(…)" and nothing behind the call.
bool asks_for_truth(std::string_view statement, const std::string& name) {
  if (!statement.starts_with("assert ")) return false;
  statement.remove_prefix(7);
  if (statement.starts_with("not ")) statement.remove_prefix(4);
  if (!statement.starts_with(name + "(")) return false;
  int depth = 0;
  char quote = '\0';
  for (std::size_t i = name.size(); i < statement.size(); ++i) {
    const char c = statement[i];
    if (quote != '\0') {
      if (c == '\\') ++i;
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && --depth == 0) {
      return statement.find_first_not_of(" \t\r\n", i + 1) == std::string_view::npos;
    }
  }
  return false;
}

}  // namespace

std::string truth_wrapper(const Task& task, const Asserts& tests) {
  if (task.entry_point.empty()) return {};
  for (const std::string& statement : tests.statements) {
    if (!asks_for_truth(statement, task.entry_point)) return {};
  }
  return "\n\nfixpoint_result = " + task.entry_point + "\ndef " + task.entry_point + "(*arguments):\n    return bool(fixpoint_result(*arguments))\n";
}

std::string contest_preamble(std::string_view entry_point) {
  std::string out = std::string(datasets::contest_prelude()) + "\n";
  // A name that the imports happen to have is not the program's.
  if (!entry_point.empty()) out.append("globals().pop('").append(entry_point).append("', None)\n");
  return out;
}

std::string contest_source(std::string_view program, std::string_view entry_point) {
  std::string out = contest_preamble(entry_point).append(program);
  if (entry_point.empty()) return out;
  out.append("\n\nfixpoint_target = ").append(program.find("class Solution") != std::string_view::npos ? "Solution()." : "").append(entry_point);
  out.append("\ndef ").append(kContestCall).append("(*arguments):\n    result = fixpoint_target(*arguments)\n"
                                                   "    return list(result) if isinstance(result, tuple) else result\n");
  return out;
}

CallCheck json_call_check(const Task& task, const JsonCalls& tests, std::string& source) {
  source = contest_source(source, task.entry_point);
  CallCheck check{.entry_point = std::string(kContestCall), .tests = {}};
  for (const JsonCalls::Call& call : tests.calls) {
    Value accepted = Value::list_of({call.expected});
    if (call.also_accepted) accepted.items.push_back(*call.also_accepted);
    check.tests.push_back({.arguments = call.arguments.items, .expected = std::move(accepted)});
  }
  check.equality.oracle = [](const Value& got, const Value& accepted) {
    for (const Value& value : accepted.items) {
      if (equal(got, value)) return true;
    }
    return false;
  };
  return check;
}

namespace {

void expect(CallCheck& check, const Differential& tests, std::vector<Value> outputs) {
  const std::vector<double> tolerances = effective_tolerances(tests.tolerance, outputs);
  const bool needs_arguments = tests.oracle == Oracle::polynomial_zero || tests.oracle == Oracle::pyramid_surface || tests.oracle == Oracle::padded_digit_distance;
  for (std::size_t i = 0; i < check.tests.size(); ++i) {
    Value arguments = needs_arguments ? Value::list_of(check.tests[i].arguments) : Value();
    check.tests[i].expected = pack({std::move(arguments), std::move(outputs[i]), tolerances[i]});
  }
  check.equality.oracle = [oracle = tests.oracle](const Value& got, const Value& packed) { return accepts_packed(oracle, got, packed); };
}

}  // namespace

DifferentialChecks differential_checks(const Task& task, const Differential& tests, CanonicalOutputs outputs) {
  DifferentialChecks out{.wall = outputs.wall, .digests = outputs.digests};
  std::string unused;
  const std::string name = called_name(task, {tests.oracle, false, outputs.digests}, unused);
  out.base = call_check(name, tests.base);
  out.plus = call_check(name, tests.plus);
  expect(out.base, tests, std::move(outputs.base));
  expect(out.plus, tests, std::move(outputs.plus));
  return out;
}

}  // namespace fixpoint::evals::detail
