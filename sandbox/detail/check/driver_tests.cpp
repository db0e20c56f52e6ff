// Given tests in Python and JavaScript: apart from the program where their text allows it, else inside its process.
#include "sandbox/detail/check/judge.h"

#include <algorithm>
#include <cctype>

namespace fixpoint::sandbox::detail {
namespace {

using Kind = Value::Kind;

constexpr std::size_t max_units = 100'000;

bool is(const Value& message, std::string_view kind) { return message.kind == Kind::tuple && text_at(message, 0) == kind; }

const Value& at(const Value& message, std::size_t index) {
  static const Value none;
  return index < message.items.size() ? message.items[index] : none;
}

// The record of an exception that goes on into the tests' jail: only texts, and names that are names.
Value clean_record(const Value& record) {
  const auto identifier = [](std::string text) {
    std::erase_if(text, [](unsigned char c) { return c >= 0x80 || (!std::isalnum(c) && c != '_'); });
    return Value::of(text.empty() ? std::string("Exception") : text.substr(0, 100));
  };
  std::vector<Value> bases;
  for (const Value& base : at(record, 1).items) {
    if (bases.size() < 20) bases.push_back(identifier(base.text));
  }
  std::vector<Value> frames;
  for (const Value& frame : at(record, 3).items) {
    const bool shaped = frame.items.size() == 4 && frame.items[1].kind == Kind::integer;
    if (!shaped || frames.size() >= 40) continue;
    frames.push_back(Value::tuple_of({Value::of(text_at(frame, 0)), frame.items[1], Value::of(text_at(frame, 2)), Value::of(text_at(frame, 3))}));
  }
  return Value::tuple_of({identifier(text_at(record, 0)), Value::list_of(std::move(bases)), Value::of(text_at(record, 2)),
                          Value::list_of(std::move(frames))});
}

enum class Mode { apart, inside, stub };

// Asks a driver to run the tests and follows its reports. With `candidate`, calls go over to that jail and back.
class TestRun {
 public:
  TestRun(Judge& judge, const TextCheck& check, Mode mode)
      : judge_(judge), check_(check), mode_(mode),
        tests_(judge.sandbox, *driver_job(driver_only(), "", judge.options.limits), max_message_bytes, judge.stop) {}

  // Why the tests cannot run apart; nothing when they can. Fails with an error where they cannot be read.
  tl::expected<std::string, std::string> plan();
  // Runs them all; false when something ended them early.
  bool run(Conversation* candidate);

  bool uses_objects() const { return uses_objects_; }
  bool unloadable() const { return unloadable_; }
  std::vector<TestResult> units;
  std::string error;
  bool finished = false;
  std::optional<Silence> tests_silence, candidate_silence;
  Conversation& tests() { return tests_; }

 private:
  Program driver_only() const { return {judge_.program.language, "", judge_.program.files}; }
  bool send(std::vector<Value> parts) { return tests_.send(Value::tuple_of(std::move(parts)), std::max(deadline_, judge_.call_deadline())); }
  bool silent(Silence silence) {
    tests_silence = silence;
    return false;
  }
  bool relay(Conversation* candidate, Value question);
  bool unit(const Value& message);
  bool report(const Value& message);
  bool done(const Value& message);

  Judge& judge_;
  const TextCheck& check_;
  Mode mode_;
  Conversation tests_;
  bool uses_objects_ = false;
  bool unloadable_ = false;
  bool open_ = false;  // a unit has begun and not reported
  std::string nonce_;
  std::chrono::steady_clock::time_point deadline_{};
};

tl::expected<std::string, std::string> TestRun::plan() {
  const char* mode = mode_ == Mode::apart ? "apart" : mode_ == Mode::inside ? "inside" : "stub";
  deadline_ = judge_.start_deadline();
  bool sent = send({Value::of("tests"), Value::of(mode_ == Mode::inside ? "" : check_.tests), Value::of(judge_.program.language == Language::python ? "tests.py" : "tests.js"),
                    Value::of(check_.entry_point), Value::of(check_.module_name), Value::of(mode),
                    Value::of(mode_ == Mode::inside ? judge_.program.source : "")});
  if (sent && mode_ == Mode::inside) {
    const auto loaded = tests_.receive(deadline_);
    if (loaded && is(*loaded, "unloadable")) {
      unloadable_ = true;
      describe_exception(units.emplace_back(), at(*loaded, 1), judge_.options.max_text_bytes);
      return std::string{};
    }
    if (!loaded || !is(*loaded, "loaded")) {
      tests_silence = loaded ? Silence::garbled : loaded.error();
      return std::string{};
    }
    sent = send({Value::of("text"), Value::of(check_.tests)});
  }
  const auto message = sent ? tests_.receive(deadline_) : tl::expected<Value, Silence>(tl::unexpected(Silence::ended));
  if (!message) {
    tests_silence = message.error();
    return std::string{};
  }
  if (is(*message, "plan")) {
    uses_objects_ = at(*message, 2).boolean;
    return text_at(*message, 1);
  }
  TestResult problem;
  describe_exception(problem, at(*message, 1), 500);
  return tl::unexpected("the tests cannot be read: " + problem.message);
}

bool TestRun::run(Conversation* candidate) {
  deadline_ = judge_.call_deadline();
  if (!send({Value::of("go")})) return silent(Silence::ended);
  while (true) {
    auto message = tests_.receive(deadline_);
    if (!message) return silent(message.error());
    bool good = false;
    if (is(*message, "ask") && candidate != nullptr) {
      good = relay(candidate, std::move(*message));
    } else if (is(*message, "unit")) {
      good = unit(*message);
    } else if (is(*message, "report")) {
      good = report(*message);
    } else if (is(*message, "problem")) {
      error = text_at(*message, 1).substr(0, 500);
      good = true;
    } else if (is(*message, "broken")) {
      TestResult& result = units.emplace_back();
      result.test = "the tests' own statements";
      describe_exception(result, at(*message, 1), judge_.options.max_text_bytes);
      return false;
    } else if (is(*message, "done")) {
      return done(*message);
    }
    if (candidate_silence || tests_silence) return false;
    if (!good) return silent(Silence::garbled);
  }
}

bool TestRun::relay(Conversation* candidate, Value question) {
  const std::string kind = text_at(question, 1);
  if (kind != "call" && kind != "kind" && kind != "operate") return false;
  std::vector<Value> parts(std::make_move_iterator(question.items.begin() + 2), std::make_move_iterator(question.items.end()));
  auto answer = candidate->ask(kind.c_str(), std::move(parts), deadline_);
  if (!answer) {
    candidate_silence = answer.error();
    return false;
  }
  if (answer->raised) return send({Value::of("raise"), clean_record(answer->value)});
  return send({Value::of("value"), std::move(answer->value), std::move(answer->changed)});
}

bool TestRun::unit(const Value& message) {
  if (open_ || units.size() >= max_units) return false;
  open_ = true;
  units.emplace_back().test = judge_.shown(text_at(message, 2));
  deadline_ = judge_.call_deadline();
  Value nonce = fresh_nonce();
  nonce_ = nonce.text;
  return send({Value::of("begin"), std::move(nonce)});
}

bool TestRun::report(const Value& message) {
  const bool ours = open_ && message.items.size() == 8 && at(message, 1).text == nonce_ &&
                    at(message, 2).text == std::to_string(units.size() - 1);
  if (!ours) return false;
  open_ = false;
  TestResult& result = units.back();
  const std::string outcome = text_at(message, 3);
  if (outcome == "passed") {
    result.outcome = TestOutcome::passed;
    return true;
  }
  if (at(message, 7).kind == Kind::tuple) describe_exception(result, at(message, 7), judge_.options.max_text_bytes);
  if (outcome == "failed" || result.outcome == TestOutcome::not_run) {
    result.outcome = TestOutcome::wrong;
    result.message = judge_.shown(text_at(message, 4));
    result.got = judge_.shown(text_at(message, 5));
    result.expected = judge_.shown(text_at(message, 6));
  }
  return outcome == "failed" || outcome == "raised";
}

bool TestRun::done(const Value& message) {
  if (open_ || at(message, 1).text != std::to_string(units.size())) return silent(Silence::garbled);
  if (error.empty() && units.empty()) error = "there is no test";
  const bool all = std::all_of(units.begin(), units.end(), [](const TestResult& unit) { return unit.outcome == TestOutcome::passed; });
  if (error.empty() && all && at(message, 2).text == "0") error = "the tests assert nothing";
  finished = true;
  return true;
}

void take_units(Judge& judge, TestRun& run) {
  judge.result.tests = std::move(run.units);
  if (!run.error.empty() && judge.result.error.empty()) judge.result.error = run.error;
}

// The last unit, or a new one where none had begun, ends as this jail did.
void blame(Judge& judge, const Verdict& verdict, std::optional<Silence> silence) {
  auto& tests = judge.result.tests;
  if (tests.empty() || tests.back().outcome != TestOutcome::not_run) tests.emplace_back().test = "the program";
  judge.ended_at(tests.size() - 1, verdict, silence);
}

void run_inside(Judge& judge, const TextCheck& check) {
  judge.result.level = CheckLevel::in_process;
  TestRun run(judge, check, Mode::inside);
  const auto plan = run.plan();
  if (!plan) {
    judge.result.error = plan.error();
    return judge.account(run.tests().finish(true));
  }
  const bool went_well = !run.unloadable() && !run.tests_silence && run.run(nullptr);
  std::optional<Silence> silence = run.tests_silence;
  if (went_well) silence = run.tests().end(judge.call_deadline());
  const Verdict verdict = run.tests().finish(!went_well || silence);
  take_units(judge, run);
  if (silence || (went_well && !verdict.ok())) {
    if (went_well) judge.result.tests.emplace_back().test = "a normal end";
    return blame(judge, verdict, silence);
  }
  judge.account(verdict);
}

// Nothing when the tests must run inside, and why.
std::optional<std::string> run_apart(Judge& judge, const TextCheck& check) {
  judge.result.level = CheckLevel::separate_tests;
  Conversation candidate(judge.sandbox, *driver_job(judge.program, "", judge.options.limits), max_message_bytes, judge.stop);
  TestRun run(judge, check, Mode::apart);
  const auto plan = run.plan();
  if (!plan || run.tests_silence) {
    const Verdict verdict = run.tests().finish(true);
    judge.result.error = plan ? "the tests did not start: " + describe(verdict.outcome) : plan.error();
    judge.account(verdict);
    return std::nullopt;
  }
  if (!plan->empty()) return *plan;
  if (run.uses_objects()) judge.result.notes.push_back("the tests use more than the entry point: objects of the program's classes take part");
  const auto loaded = load(candidate, judge.program, check.module_name, run.uses_objects(), judge.start_deadline());
  if (!loaded || loaded->raised) {
    TestResult& test = judge.result.tests.emplace_back();
    test.test = "the program's own statements";
    if (loaded) describe_exception(test, loaded->value, judge.options.max_text_bytes);
    const Verdict verdict = candidate.finish(!loaded || candidate.end(judge.call_deadline()));
    loaded ? judge.account(verdict) : judge.ended_at(0, verdict, loaded.error());
    return std::nullopt;
  }
  run.run(&candidate);
  const std::optional<Silence> silence = run.candidate_silence ? run.candidate_silence : candidate.end(judge.call_deadline());
  const Verdict verdict = candidate.finish(silence.has_value());
  const Verdict tests_verdict = run.tests().finish(!run.finished || run.tests().end(judge.call_deadline()));
  take_units(judge, run);
  judge.result.cpu += tests_verdict.usage.cpu;
  if (run.candidate_silence || (run.finished && (silence || !verdict.ok()))) {
    if (run.finished) judge.result.tests.emplace_back().test = "a normal end";
    blame(judge, verdict, silence);
    return std::nullopt;
  }
  if (run.tests_silence) {
    blame(judge, tests_verdict, run.tests_silence);
    judge.result.tests.back().message += " (in the tests)";
    return std::nullopt;
  }
  if (run.finished && !tests_verdict.ok()) judge.result.error = "the tests came to no normal end: " + describe(tests_verdict.outcome);
  judge.account(verdict);
  return std::nullopt;
}

// Whether the tests refuse a program that is certainly wrong.
bool refuses_a_stub(Judge& judge, const TextCheck& check) {
  TestRun run(judge, check, Mode::stub);
  if (!run.plan() || run.tests_silence || !run.run(nullptr) || !run.error.empty()) return true;
  return std::any_of(run.units.begin(), run.units.end(), [](const TestResult& t) { return t.outcome != TestOutcome::passed; });
}

}  // namespace

void Judge::driver_tests(const TextCheck& check) {
  const bool python = program.language == Language::python;
  std::optional<std::string> inside;
  if (check.isolation == Isolation::in_process) {
    inside = "asked for";
  } else if (python) {
    if (auto calls_of_list = parse_simple_asserts(check.tests)) {
      CallCheck list;
      list.entry_point = check.entry_point;
      list.tests = std::move(*calls_of_list);
      return calls(list);
    }
    inside = run_apart(*this, check);
  } else if (check.entry_point.empty()) {
    inside = "no entry point is named";
  } else {
    inside = run_apart(*this, check);
  }
  if (inside && check.isolation == Isolation::separate) {
    result.error = "the tests cannot run apart from the program: " + *inside;
    return;
  }
  if (inside) {
    result.notes.push_back("in-process verdict: " + *inside);
    run_inside(*this, check);
  }
  const bool all = !result.tests.empty() && result.error.empty() &&
                   std::all_of(result.tests.begin(), result.tests.end(), [](const TestResult& t) { return t.outcome == TestOutcome::passed; });
  if (all && check.probe && (python || !check.entry_point.empty()) && !refuses_a_stub(*this, check)) result.error = "the tests accept a program that is certainly wrong";
}

}  // namespace fixpoint::sandbox::detail
