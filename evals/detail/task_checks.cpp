#include "evals/detail/task_checks.h"

#include <algorithm>
#include <limits>

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

/// Large outputs as a hash: rows of numbers of that of their doubles, where these are exact, others of that of their text. Numbers stand
/// by value, 3, 3.0 and True are one.
constexpr const char* kDigestSource = R"(

def fixpoint_plain(value):
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() else value
    if kind is bool:
        return int(value)
    if kind is list:
        return [fixpoint_plain(item) for item in value]
    if kind is tuple:
        return tuple([fixpoint_plain(item) for item in value])
    if kind is dict:
        return sorted((repr(fixpoint_plain(key)), fixpoint_plain(item)) for key, item in value.items())
    if kind is set or kind is frozenset:
        return ('set', sorted(repr(fixpoint_plain(item)) for item in value))
    return value

def fixpoint_numbers(value):
    if type(value) is not list and type(value) is not tuple or not {int, float, bool}.issuperset(map(type, value)):
        return False
    return not value or -9007199254740992 <= min(value) and max(value) <= 9007199254740992

def fixpoint_reduced(value):
    import array, hashlib
    if fixpoint_numbers(value):
        if len(value) < 50000:
            return value
        data = array.array('d', [number + 0.0 for number in value])
        return ('sha256', hashlib.sha256(type(value).__name__.encode() + data.tobytes()).hexdigest())
    if len(repr(value)) < 1000000:
        return value
    return ('sha256', hashlib.sha256(repr(fixpoint_plain(value)).encode('utf-8', 'surrogatepass')).hexdigest())
)";

constexpr const char* kTextDigestSource = R"(

def fixpoint_reduced(value):
    if type(value) is not str or len(value) < 65536:
        return value
    import hashlib
    return ('sha256', hashlib.sha256(value.encode('utf-8', 'surrogatepass')).hexdigest())
)";

bool is_digest(const Value& value) {
  return value.kind == Value::Kind::tuple && value.items.size() == 2 && value.items[0].kind == Value::Kind::string && value.items[0].text == "sha256";
}

}  // namespace

std::string differential_entry_point(const Task& task, const DifferentialCall& call, std::string& source) {
  if (call.oracle == Oracle::not_none) {
    // The outputs are match objects: only whether there is one is compared (a program may also say so itself).
    const std::string own = call.reference ? "" : "result if isinstance(result, bool) else ";
    source += "\n\ndef fixpoint_not_none(*arguments):\n    result = " + task.entry_point + "(*arguments)\n    return " + own + "result is not None\n";
    return "fixpoint_not_none";
  }
  if (call.digests == Digests::none) return task.entry_point;
  source += call.digests == Digests::texts ? kTextDigestSource : kDigestSource;
  source += "\ndef fixpoint_digest(*arguments):\n    return fixpoint_reduced(" + task.entry_point + "(*arguments))\n";
  return "fixpoint_digest";
}

namespace {

/// More than this would take long to travel and much memory to keep.
constexpr std::size_t kMostNodes = 1'000'000;

std::size_t nodes_of(const Value& value) {
  std::size_t out = 1;
  for (const Value& item : value.items) out += nodes_of(item);
  return out;
}
constexpr const char* kTooLarge = "its outputs are too large";

/// The canonical solution's outputs, in the order of the tests. Their nodes are taken off `room`; kTooLarge as soon as that is used up.
tl::expected<std::vector<Value>, std::string> outputs_of(sandbox::Sandbox& sandbox, const std::string& source, CallCheck check,
                                                         sandbox::CheckOptions options, std::size_t& room, std::stop_token stop,
                                                         std::chrono::milliseconds& wall) {
  if (check.tests.empty()) return std::vector<Value>();
  options.stop_at_first_failure = true;
  std::vector<Value> outputs;
  bool fits = true;
  check.equality.oracle = [&](const Value& got, const Value&) {
    const std::size_t nodes = nodes_of(got);
    fits = nodes <= room;
    if (!fits) return false;
    room -= nodes;
    outputs.push_back(got);
    return true;
  };
  const auto result = sandbox::check(sandbox, {sandbox::Language::python, source}, check, options, stop);
  wall += std::chrono::duration_cast<std::chrono::milliseconds>(result.wall);
  if (!fits) return tl::unexpected(std::string(kTooLarge));
  if (result.passed && outputs.size() == check.tests.size()) return outputs;
  const sandbox::TestResult* failure = result.first_failure();
  return tl::unexpected("the canonical solution did not answer: " + (!result.error.empty() ? result.error : failure != nullptr ? failure->message : "no reason"));
}

CallCheck call_check(const std::string& entry_point, const std::vector<Value>& inputs) {
  CallCheck check{.entry_point = entry_point, .tests = {}};
  for (const Value& input : inputs) check.tests.push_back({.arguments = input.items});
  return check;
}

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

namespace {

tl::expected<DifferentialChecks, std::string> answered_checks(sandbox::Sandbox& sandbox, const Task& task, const Differential& tests, Digests digests,
                                                              const sandbox::CheckOptions& options, std::stop_token stop) {
  std::string reference = task.reference;
  const std::string reference_entry = differential_entry_point(task, {tests.oracle, true, digests}, reference);
  DifferentialChecks out;
  std::size_t room = digests == Digests::all ? std::numeric_limits<std::size_t>::max() : kMostNodes;
  auto base = outputs_of(sandbox, reference, call_check(reference_entry, tests.base), options, room, stop, out.reference_wall);
  if (!base) return tl::unexpected(base.error());
  auto plus = outputs_of(sandbox, reference, call_check(reference_entry, tests.plus), options, room, stop, out.reference_wall);
  if (!plus) return tl::unexpected(plus.error());
  // Where no text was long, the program is called as it is.
  const bool needed = digests == Digests::all || std::any_of(base->begin(), base->end(), is_digest) || std::any_of(plus->begin(), plus->end(), is_digest);
  out.digests = needed ? digests : Digests::none;
  std::string unused;
  const std::string entry = differential_entry_point(task, {tests.oracle, false, out.digests}, unused);
  out.base = call_check(entry, tests.base);
  out.plus = call_check(entry, tests.plus);
  expect(out.base, tests, *std::move(base));
  expect(out.plus, tests, *std::move(plus));
  return out;
}

}  // namespace

tl::expected<DifferentialChecks, std::string> differential_checks(sandbox::Sandbox& sandbox, const Task& task, const Differential& tests,
                                                                  const sandbox::Limits& limits, std::stop_token stop) {
  const sandbox::CheckOptions options{.limits = limits, .call_wall = limits.wall};
  auto checks = answered_checks(sandbox, task, tests, Digests::texts, options, stop);
  if (!checks && checks.error() == kTooLarge) checks = answered_checks(sandbox, task, tests, Digests::all, options, stop);
  return checks;
}

}  // namespace fixpoint::evals::detail
