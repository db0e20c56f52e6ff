#include "evals/detail/canonical_outputs.h"

#include <algorithm>
#include <limits>

namespace fixpoint::evals::detail {

using sandbox::CallCheck;
using sandbox::Value;

namespace {

/// Large outputs as a hash: long rows of numbers as that of their doubles, where these are exact, others as that of their text. Equal
/// values must have one hash: numbers stand by value, and 3, 3.0 and True are one.
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

def fixpoint_reduced(value):
    import array, builtins, hashlib
    numbers = isinstance(value, (builtins.list, builtins.tuple)) and len(value) >= 200000
    if numbers and all([issubclass(kind, (builtins.int, builtins.float)) for kind in builtins.set(builtins.map(type, value))]):
        total = builtins.sum(value)
        if total == total and -9007199254740992 <= builtins.min(value) and builtins.max(value) <= 9007199254740992:
            data = array.array('d', [number + 0.0 for number in value])
            kind = b'list' if isinstance(value, builtins.list) else b'tuple'
            return ('sha256', hashlib.sha256(kind + data.tobytes()).hexdigest())
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

std::string called_name(const Task& task, const OutputsOf& call, std::string& source) {
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

CallCheck call_check(const std::string& entry_point, const std::vector<Value>& inputs) {
  CallCheck check{.entry_point = entry_point, .tests = {}};
  for (const Value& input : inputs) check.tests.push_back({.arguments = input.items});
  return check;
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
                                                         const sandbox::CheckOptions& options, std::size_t& room, std::stop_token stop,
                                                         std::chrono::milliseconds& wall) {
  if (check.tests.empty()) return std::vector<Value>();
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

tl::expected<CanonicalOutputs, std::string> answered(sandbox::Sandbox& sandbox, const Task& task, const Differential& tests, Digests digests,
                                                     const sandbox::CheckOptions& options, std::stop_token stop) {
  std::string source = task.reference;
  const std::string name = called_name(task, {tests.oracle, true, digests}, source);
  CanonicalOutputs out;
  std::size_t room = digests == Digests::all ? std::numeric_limits<std::size_t>::max() : kMostNodes;
  auto base = outputs_of(sandbox, source, call_check(name, tests.base), options, room, stop, out.wall);
  if (!base) return tl::unexpected(base.error());
  auto plus = outputs_of(sandbox, source, call_check(name, tests.plus), options, room, stop, out.wall);
  if (!plus) return tl::unexpected(plus.error());
  // Where no text was long, the program is called as it is.
  const bool needed = digests == Digests::all || std::any_of(base->begin(), base->end(), is_digest) || std::any_of(plus->begin(), plus->end(), is_digest);
  out.digests = needed ? digests : Digests::none;
  out.base = *std::move(base);
  out.plus = *std::move(plus);
  return out;
}

}  // namespace

tl::expected<CanonicalOutputs, std::string> canonical_outputs(sandbox::Sandbox& sandbox, const Task& task, const Differential& tests,
                                                              const sandbox::Limits& limits, std::stop_token stop) {
  const sandbox::CheckOptions options{.limits = limits, .call_wall = limits.wall, .stop_at_first_failure = true};
  auto outputs = answered(sandbox, task, tests, Digests::texts, options, stop);
  if (!outputs && outputs.error() == kTooLarge) outputs = answered(sandbox, task, tests, Digests::all, options, stop);
  return outputs;
}

}  // namespace fixpoint::evals::detail
