#include "agent/progress.h"

#include <algorithm>

#include "agent/extract.h"
#include "agent/prompt.h"

namespace fixpoint::agent {
namespace {

bool is_program_purpose(Purpose purpose) { return purpose != Purpose::own_tests && purpose != Purpose::explanation; }

/// Applies one event; each overload states what the event means.
struct Fold {
  Progress& at;

  Round& attempt(int id) const { return at.attempts[static_cast<std::size_t>(id)]; }

  void back_from_person() const {
    at.ended = false;
    at.rounds_unattended = 0;
    at.stuck.reset();
    // The ladder stands just before the person again.
    const auto person = std::find_if(at.options.ladder.begin(), at.options.ladder.end(),
                                     [](const Rung& rung) { return rung.kind == RungKind::person; });
    at.rung = static_cast<int>(person - at.options.ladder.begin()) - 1;
    at.rung_uses = at.rung >= 0 ? at.options.ladder[static_cast<std::size_t>(at.rung)].attempts : 0;
  }

  void operator()(const SessionStarted& event) const {
    at.task = event.task;
    at.options = event.options;
    at.in_batch = event.in_batch;
  }
  void operator()(const RoundStarted& event) const {
    if (event.number > at.rounds) ++at.rounds_unattended;
    at.rounds = std::max(at.rounds, event.number);
    at.round = event;
    at.round_attempts.clear();
    at.round_open = true;
    at.redraws = event.again ? at.redraws + 1 : 0;
    at.stuck.reset();
    if (event.uses_rung) ++at.rung_uses;
  }
  void operator()(const GenerationStarted& event) const {
    Round round;
    round.attempt = event.attempt;
    round.number = event.number;
    round.draft = event.draft;
    round.ask = event.ask;
    at.attempts.push_back(std::move(round));
    at.round_attempts.push_back(event.attempt);
    if (event.ask.purpose == Purpose::repair || event.ask.purpose == Purpose::review) at.advice.clear();
  }
  void operator()(const TextDelta&) const {}
  void operator()(const Generated& event) const {
    Round& round = attempt(event.attempt);
    round.finished = true;
    round.text = event.text;
    round.finish = event.finish;
    round.usage = event.usage;
    round.cost += event.cost;
    at.usage += event.usage;
    at.failures_in_row = 0;
  }
  void operator()(const GenerationFailed& event) const {
    Round& round = attempt(event.attempt);
    round.cost += event.cost;
    at.usage += event.usage;
    if (event.kind == GenerateError::Kind::cancelled) return;  // to be asked again
    round.finished = true;
    round.error = event.kind;
    round.error_detail = event.detail;
    at.failure_detail = event.detail;
    ++at.failures_in_row;
  }
  void operator()(const Explained& event) const {
    attempt(event.attempt).explanation = event.text;
    if (attempt(event.attempt).ask.purpose == Purpose::explanation) {
      at.advice = event.text;
      at.adviser = Writer::explainer;
    }
  }
  void operator()(const ProgramWritten& event) const {
    Round& round = attempt(event.attempt);
    round.program = event.program;
    round.extract = event.kind;
    round.program_key = program_key(event.program, at.task.language);
  }
  void operator()(const TestsWritten& event) const { at.own_tests = event.tests; }
  void operator()(const CheckStarted&) const {}
  void operator()(const Checked& event) const {
    Round& round = attempt(event.attempt);
    round.judgement = event.judgement;
    round.failure_key = failure_key(event.judgement);
    round.cost += event.cost;
    at.failures_in_row = 0;
  }
  void operator()(const CheckFailed& event) const {
    attempt(event.attempt).cost += event.cost;
    if (event.kind == CheckError::Kind::cancelled) return;
    // What can't work is not tried again.
    at.failures_in_row += event.kind == CheckError::Kind::unsupported ? kMaxFailuresInRow : 1;
    at.failure_detail = event.detail;
  }
  void operator()(const Stuck& event) const { at.stuck = event; }
  void operator()(const Climbed& event) const {
    at.rung = event.rung;
    at.highest_rung = std::max(at.highest_rung, event.rung);
    at.rung_uses = 0;
    at.granted += event.grant;
    // A round in which nothing could be generated is over; one that only lacked budget goes on.
    const std::size_t failed = std::erase_if(at.round_attempts, [&](int id) { return attempt(id).error.has_value(); });
    if (failed > 0 && at.round_attempts.empty()) at.round.drafts = 0;
  }
  void operator()(const Scored& event) const { at.scored = event; }
  void operator()(const Ended& event) const {
    at.ended = true;
    at.end = event;
  }
  void operator()(const Resumed&) const {
    at.ended = false;
    at.failures_in_row = 0;
  }
  void operator()(const HintGiven& event) const {
    back_from_person();
    // With new words and rounds the model may get stuck anew, and be helped anew.
    at.rung = -1;
    at.rung_uses = 0;
    at.advice = event.text;
    at.adviser = Writer::person;
    at.granted += event.grant;
  }
  void operator()(const ProgramSubmitted& event) const {
    back_from_person();
    at.granted += event.grant;
    const int id = static_cast<int>(at.attempts.size());
    Round round;
    round.attempt = id;
    round.number = at.rounds;
    round.ask.purpose = Purpose::hand;
    round.ask.writer = Writer::person;
    round.ask.user_text = task_message(at.task);
    round.finished = true;
    round.extract = ExtractKind::fenced;
    round.program = event.program;
    round.program_key = program_key(event.program, at.task.language);
    at.attempts.push_back(std::move(round));
    at.round = {.number = at.rounds, .purpose = Purpose::hand, .writer = Writer::person};
    at.round_attempts = {id};
    at.round_open = true;
  }
  void operator()(const Declined& event) const {
    back_from_person();
    at.declined = event;
  }
};

/// Better than `other`: judged before not judged, more tests passed, the earlier one.
bool better(const Round& a, const Round& b) {
  if (a.passed() != b.passed()) return a.passed();
  if (a.judgement.has_value() != b.judgement.has_value()) return a.judgement.has_value();
  if (!a.judgement) return false;
  if (a.judgement->passed != b.judgement->passed) return a.judgement->passed > b.judgement->passed;
  // Without tests a program that loads is better than one that does not, and a later one than what a review replaced.
  if (a.judgement->status == CheckStatus::passed && a.judgement->total == 0) return a.attempt > b.attempt || !b.passed();
  return false;
}

}  // namespace

void Progress::apply(const Event& event) {
  spent += cost_of(event);
  std::visit(Fold{*this}, event);
}

const Round* Progress::focus() const {
  const Round* last = nullptr;
  for (const Round& attempt : attempts) {
    if (!attempt.finished || attempt.error || !is_program_purpose(attempt.ask.purpose)) continue;
    const bool parallel = last != nullptr && last->number == attempt.number && last->ask.purpose == Purpose::draft &&
                          attempt.ask.purpose == Purpose::draft && attempt.draft > last->draft;  // else it was drawn again
    if (!parallel || better(attempt, *last)) last = &attempt;
  }
  return last;
}

const Round* Progress::best() const {
  const Round* best = nullptr;
  for (const Round& attempt : attempts) {
    if (attempt.program.empty() || !is_program_purpose(attempt.ask.purpose)) continue;
    if (best == nullptr || better(attempt, *best)) best = &attempt;
  }
  return best;
}

}  // namespace fixpoint::agent
