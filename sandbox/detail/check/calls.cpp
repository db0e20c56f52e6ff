// One call at a time: the judge asks, the driver answers with a value, the judge compares.
#include "sandbox/detail/check/judge.h"

#include <algorithm>

namespace fixpoint::sandbox::detail {
namespace {

std::string call_text(const CallTest& test, const std::string& entry_point, std::size_t max_text_bytes) {
  std::string out = (test.entry_point.empty() ? entry_point : test.entry_point) + '(';
  bool first = true;
  const auto add = [&](const std::string& text) {
    if (!first) out += ", ";
    first = false;
    out += text;
  };
  for (const Value& value : test.arguments) add(to_text(value, max_text_bytes));
  for (const auto& [key, value] : test.named) add(key + '=' + to_text(value, max_text_bytes));
  return out + ')';
}

// What one call came to: a value, an exception's record, or silence.
struct Reply {
  std::optional<Answer> answer;
  std::optional<Silence> silence;
};

// All calls of one program, in order, until one gets no answer.
class Caller {
 public:
  Caller(Judge& judge, const Program& program, const CallCheck& check)
      : judge_(judge), entry_point_(check.entry_point), tests_(check.tests), python_(program.language == Language::python) {
    auto job = driver_job(program, entry_point_, judge.options.limits);
    if (!job) return;
    line_ = std::make_unique<Conversation>(judge.sandbox, std::move(*job), max_message_bytes, judge.stop);
    // Compilation comes before the first answer, under limits of its own.
    const auto start = program.language == Language::cpp ? std::chrono::minutes(2) : std::chrono::minutes(0);
    loaded_ = to_reply(load(*line_, program, "solution", false, judge.start_deadline() + start));
  }

  bool supported() const { return line_ != nullptr; }
  const Reply& loaded() const { return loaded_; }
  // The reply to the next test, while later ones are asked already.
  Reply next() {
    if (line_->runs_low()) {
      while (asked_ < tests_.size() && line_->may_ask()) ask(tests_[asked_++]);
    }
    return to_reply(line_->next_answer(judge_.call_deadline()));
  }
  [[nodiscard]] bool owes_answers() const { return line_->owes_answers(); }
  [[nodiscard]] std::optional<Silence> end() { return line_->end(judge_.call_deadline()); }
  Verdict finish(bool stop_now) { return line_->finish(stop_now); }

 private:
  void ask(const CallTest& test) {
    const Value nonce = fresh_nonce();
    const std::string& name = test.entry_point.empty() ? entry_point_ : test.entry_point;
    line_->ask_ahead(message_bytes(CallQuestion{name, test.arguments, test.named, python_}, nonce), nonce);
  }
  static Reply to_reply(tl::expected<Answer, Silence> answer) {
    if (!answer) return {std::nullopt, answer.error()};
    return {std::move(*answer), std::nullopt};
  }

  Judge& judge_;
  const std::string& entry_point_;
  const std::vector<CallTest>& tests_;
  const bool python_;
  std::size_t asked_ = 0;
  std::unique_ptr<Conversation> line_;
  Reply loaded_;
};

void judge_answer(TestResult& test, const Answer& answer, const std::variant<Value, std::string>& expected, const Equality& rules,
                  std::size_t max_text_bytes) {
  if (const auto* class_name = std::get_if<std::string>(&expected)) {
    if (answer.raised && is_exception(answer.value, *class_name)) {
      test.outcome = TestOutcome::passed;
      return;
    }
    test.expected = "raises " + *class_name;
  } else if (!answer.raised && equal(answer.value, std::get<Value>(expected), rules)) {
    test.outcome = TestOutcome::passed;
    return;
  } else {
    test.expected = to_text(std::get<Value>(expected), max_text_bytes);
  }
  if (answer.raised) {
    describe_exception(test, answer.value, max_text_bytes);
  } else {
    test.outcome = TestOutcome::wrong;
    test.got = to_text(answer.value, max_text_bytes);
    test.value = answer.value;
  }
}

// What the reference program gives for each test; an error where it fails.
tl::expected<std::vector<std::variant<Value, std::string>>, std::string> reference_answers(Judge& judge, const CallCheck& check) {
  std::vector<std::variant<Value, std::string>> out;
  Caller caller(judge, *check.reference, check);
  if (!caller.supported()) return tl::unexpected(std::string("no calls in this language"));
  const auto failed = [&](const Reply& reply) {
    TestResult test;
    const Verdict verdict = caller.finish(true);
    if (reply.answer) {
      describe_exception(test, reply.answer->value, 500);
    } else {
      describe_end(test, verdict, reply.silence);
    }
    return tl::unexpected("the reference program failed: " + test.message);
  };
  if (!caller.loaded().answer || caller.loaded().answer->raised) return failed(caller.loaded());
  for (std::size_t i = 0; i < check.tests.size(); ++i) {
    Reply reply = caller.next();
    if (!reply.answer) return failed(reply);
    if (reply.answer->raised) {
      const Value& record = reply.answer->value;
      if (record.items.empty() || record.items[0].text == "Unserialisable") return failed(reply);
      out.emplace_back(record.items[0].text);
    } else {
      out.emplace_back(std::move(reply.answer->value));
    }
  }
  const bool ended = !caller.end();
  const Verdict verdict = caller.finish(!ended);
  judge.result.cpu += verdict.usage.cpu;
  judge.result.wall += verdict.usage.wall;
  if (!ended || !verdict.ok()) return tl::unexpected(std::string("the reference program came to no normal end"));
  return out;
}

}  // namespace

void Judge::calls(const CallCheck& check) {
  result.level = CheckLevel::returned_values;
  result.tests.resize(check.tests.size());
  std::vector<std::variant<Value, std::string>> expected;
  if (check.reference && !check.tests.empty()) {
    auto answers = reference_answers(*this, check);
    if (!answers) {
      result.error = answers.error();
      return;
    }
    expected = std::move(*answers);
  }
  if (check.tests.empty()) return;
  Equality rules = check.equality;
  if (program.language != Language::python) rules.lists_equal_tuples = true;  // the others have one kind of sequence
  Caller caller(*this, program, check);
  if (!caller.supported()) {
    result.error = "calls are judged in Python, JavaScript and C++ only, not in " + std::string(sandbox::name(program.language));
    return;
  }
  if (!caller.loaded().answer || caller.loaded().answer->raised) {
    result.tests[0].test = call_text(check.tests[0], check.entry_point, options.max_text_bytes);
    if (caller.loaded().answer) describe_exception(result.tests[0], caller.loaded().answer->value, options.max_text_bytes);
    const auto silence = caller.loaded().silence;
    silence ? ended_at(0, caller.finish(true), silence) : account(caller.finish(caller.end().has_value()));
    return;
  }
  for (std::size_t i = 0; i < check.tests.size(); ++i) {
    TestResult& test = result.tests[i];
    const Reply reply = caller.next();
    if (reply.answer) {
      judge_answer(test, *reply.answer, check.reference ? expected[i] : check.tests[i].expected, rules, options.max_text_bytes);
      if (test.outcome == TestOutcome::passed) continue;
    }
    test.test = call_text(check.tests[i], check.entry_point, options.max_text_bytes);
    if (reply.silence) return ended_at(i, caller.finish(true), reply.silence);
    // What it was asked already, it would still answer.
    if (options.stop_at_first_failure) return account(caller.finish(caller.owes_answers() || caller.end()));
  }
  const std::optional<Silence> silence = caller.end();
  Verdict verdict = caller.finish(silence.has_value());
  if (!silence && verdict.ok()) return account(verdict);
  // The last answer was right, yet the program did not end as programs do: no pass. One that was wrong stays what it is.
  const bool was_right = result.tests.back().outcome == TestOutcome::passed;
  if (was_right) result.tests.back().test = call_text(check.tests.back(), check.entry_point, options.max_text_bytes);
  ended_at(result.tests.size() - (was_right ? 1 : 0), verdict, silence);
}

}  // namespace fixpoint::sandbox::detail
