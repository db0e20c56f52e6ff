#include "agent/detail/turn.h"

#include <algorithm>
#include <exception>
#include <thread>

#include "agent/detail/digest.h"
#include "agent/detail/mailbox.h"
#include "agent/detail/plan.h"
#include "agent/detail/utf8.h"
#include "agent/prompt.h"

namespace fixpoint::agent::detail {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kMergeText{25};
constexpr milliseconds kScoreTime{60'000};

/// Rounded up: a step is never free of time.
milliseconds since(Clock::time_point start) { return std::chrono::ceil<milliseconds>(Clock::now() - start); }

LoopError journal_error(const JournalError& error) { return {LoopError::Kind::journal, error.detail}; }

std::size_t max_bytes_for(std::int64_t max_tokens) {
  constexpr std::int64_t kLeast = 4'096, kMost = std::int64_t{1} << 20;
  return static_cast<std::size_t>(std::clamp(max_tokens, kLeast / 32, kMost / 32) * 32);
}

void generate_into(Mailbox& mailbox, Generator& generator, int attempt, const GenerateRequest& request,
                   std::stop_token stop) {
  const Clock::time_point start = Clock::now();
  tl::expected<Generation, GenerateError> result = tl::unexpected(GenerateError{});
  try {
    result = generator.generate(request, [&](std::string_view text) { mailbox.add_text(attempt, text); }, std::move(stop));
  } catch (const std::exception& error) {
    result = tl::unexpected(GenerateError{.kind = GenerateError::Kind::unavailable, .detail = error.what()});
  }
  if (result && !is_valid_utf8(result->text)) result->text = to_valid_utf8(result->text);
  const milliseconds measured = since(start);
  mailbox.add_result(attempt, std::move(result), measured);
}

}  // namespace

Turn::Turn(const Services& services, Budget* batch, std::stop_token stop, const OnEvent& on_event)
    : services_(services), batch_(batch), stop_(std::move(stop)), on_event_(on_event) {}

Turn::Done Turn::begin(const std::string& session, SessionStarted started) {
  session_ = session;
  budget_ = std::make_unique<Budget>(started.options.task, batch_);
  std::vector<Event> events;
  events.emplace_back(std::move(started));
  return commit(std::move(events));
}

Turn::Done Turn::recall(const std::string& session, const std::vector<Stamped>& events) {
  session_ = session;
  for (const Stamped& stamped : events) progress_.apply(stamped.event);
  last_seq_ = events.empty() ? 0 : events.back().seq;
  budget_ = std::make_unique<Budget>(progress_.limits(), batch_);
  budget_->spend(progress_.spent);
  std::vector<Event> resumed;
  resumed.emplace_back(Resumed{});
  return commit(std::move(resumed));
}

tl::expected<Result, LoopError> Turn::run() {
  while (!progress_.ended) {
    Step step = next_step(progress_, left());
    if (stop_.stop_requested() && !std::holds_alternative<End>(step)) {
      step = End{.outcome = Outcome::cancelled, .detail = "stopped before it was done"};
    }
    const Done done = std::visit([this](const auto& it) { return perform(it); }, step);
    if (!done) return tl::unexpected(done.error());
  }
  for (Generator* generator : {services_.model, services_.specialist, services_.explainer}) {
    if (generator != nullptr) generator->release(session_);
  }
  Result result{.session = session_, .end = *progress_.end};
  if (result.end.best) result.program = progress_.attempts[static_cast<std::size_t>(*result.end.best)].program;
  result.progress = std::move(progress_);
  return result;
}

Turn::Done Turn::commit(std::vector<Event> events, Budget::Reservation* reservation) {
  const Clock::time_point made = Clock::now();
  std::vector<Stamped> stamped;
  if (services_.journal != nullptr) {
    auto written = services_.journal->append(session_, last_seq_, std::move(events));
    if (!written) return tl::unexpected(journal_error(written.error()));
    stamped = *std::move(written);
  } else {
    const auto now = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
    std::int64_t seq = last_seq_;
    for (Event& event : events) stamped.push_back({session_, ++seq, now, std::move(event)});
  }
  last_seq_ = stamped.back().seq;
  Amounts cost;
  for (Stamped& it : stamped) {
    it.made = made;
    cost += cost_of(it.event);
    progress_.apply(it.event);
  }
  // The one place where a budget is spent.
  if (reservation != nullptr) {
    reservation->spend(cost);
  } else {
    budget_->spend(cost);
  }
  if (on_event_) {
    for (const Stamped& it : stamped) on_event_(it);
  }
  return {};
}

Turn::Done Turn::perform(const StartRound& step) {
  std::vector<Event> events;
  events.emplace_back(round_started(progress_, step, left()));
  return commit(std::move(events));
}

Generator* Turn::writer(Writer role) const {
  switch (role) {
    case Writer::specialist: return services_.specialist;
    case Writer::explainer: return services_.explainer;
    case Writer::model:
    case Writer::person: break;
  }
  return services_.model;
}

/// The attempts of a Generate step: new ones, and those that were begun and never ended.
std::vector<int> Turn::attempts_for(const Generate& step, std::int64_t max_tokens, std::vector<Event>& started) const {
  std::vector<int> attempts;
  int next = static_cast<int>(progress_.attempts.size());
  for (const int draft : step.drafts) {
    const auto begun = std::find_if(progress_.round_attempts.begin(), progress_.round_attempts.end(), [&](int id) {
      const Round& attempt = progress_.attempts[static_cast<std::size_t>(id)];
      return attempt.draft == draft && !attempt.finished;
    });
    if (begun != progress_.round_attempts.end()) {
      attempts.push_back(*begun);
    } else {
      started.emplace_back(generation_started(progress_, next, draft, max_tokens));
      attempts.push_back(next++);
    }
  }
  return attempts;
}

GenerateRequest Turn::request_for(int attempt, const Amounts& granted) const {
  const Round& round = progress_.attempts[static_cast<std::size_t>(attempt)];
  const Ask& ask = round.ask;
  GenerateRequest request{.messages = messages_for(progress_, ask),
                          .session = session_,
                          .max_tokens = std::min(ask.max_tokens, granted.tokens),
                          .temperature = ask.temperature,
                          .top_p = ask.top_p,
                          .seed = ask.seed,
                          .timeout = granted.wall};
  request.max_bytes = max_bytes_for(request.max_tokens);
  const bool writes_program = ask.purpose == Purpose::draft || ask.purpose == Purpose::repair || ask.purpose == Purpose::review;
  if (writes_program) request.program_start = program_start(progress_.task);
  if (ask.parent) request.prediction = progress_.attempts[static_cast<std::size_t>(*ask.parent)].program;
  return request;
}

Turn::Done Turn::perform(const Generate& step) {
  // batch > task > round: what this step may use is set aside in all three before it begins.
  const auto drafts = static_cast<std::int64_t>(step.drafts.size());
  Amounts want = progress_.options.round;
  want.rounds = 0;
  want.sandbox = milliseconds(0);
  want.tokens *= drafts;
  Budget round(want, budget_.get());
  Budget::Reservation reservation = round.reserve(want);
  const Amounts granted = reservation.granted();
  if (granted.tokens <= 0 || granted.wall.count() <= 0) return {};  // taken by others of the batch: ask again
  Generate now = step;
  now.drafts.resize(static_cast<std::size_t>(std::min(drafts, granted.tokens)));
  const std::int64_t each = granted.tokens / static_cast<std::int64_t>(now.drafts.size());

  std::vector<Event> started;
  const std::vector<int> attempts = attempts_for(now, each, started);
  if (!started.empty()) {
    if (const Done done = commit(std::move(started)); !done) return done;
  }
  Generator* generator = writer(progress_.round.writer);
  Mailbox mailbox;
  std::vector<std::jthread> threads;  // joined before anything that they use is gone
  for (const int attempt : attempts) {
    GenerateRequest request = request_for(attempt, {.tokens = each, .wall = granted.wall});
    threads.emplace_back([&mailbox, generator, attempt, request = std::move(request)](const std::stop_token& stop) {
      generate_into(mailbox, *generator, attempt, request, stop);
    });
  }
  const std::stop_callback forward(stop_, [&threads] {
    for (std::jthread& thread : threads) thread.request_stop();
  });
  return receive(mailbox, attempts.size(), reservation);
}

Turn::Done Turn::receive(Mailbox& mailbox, std::size_t expected, Budget::Reservation& reservation) {
  milliseconds charged{0};  // parallel generations take their time together
  while (expected > 0) {
    for (Mailbox::Letter& letter : mailbox.take(kMergeText)) {
      std::vector<Event> events;
      if (!is_valid_utf8(letter.text)) letter.text = to_valid_utf8(letter.text);
      if (!letter.text.empty()) events.emplace_back(TextDelta{letter.attempt, std::move(letter.text)});
      if (letter.result) {
        --expected;
        add_result(letter, charged, events);
      }
      if (const Done done = commit(std::move(events), &reservation); !done) return done;
    }
  }
  return {};
}

void Turn::add_result(Mailbox::Letter& letter, milliseconds& charged, std::vector<Event>& events) const {
  tl::expected<Generation, GenerateError>& result = *letter.result;
  const milliseconds measured = result && result->elapsed.count() > 0 ? result->elapsed : letter.elapsed;
  Amounts cost{.tokens = result ? result->usage.completion_tokens : result.error().usage.completion_tokens,
               .wall = std::max(measured - charged, milliseconds(0))};
  charged = std::max(charged, measured);
  if (!result) {
    GenerateError& error = result.error();
    // Whatever a generator calls it: what fails after a stop request was stopped, and nothing else was.
    if (stop_.stop_requested()) {
      error.kind = GenerateError::Kind::cancelled;
    } else if (error.kind == GenerateError::Kind::cancelled) {
      error.kind = GenerateError::Kind::unavailable;
    }
    events.emplace_back(GenerationFailed{.attempt = letter.attempt,
                                         .kind = error.kind,
                                         .detail = to_valid_utf8(error.detail),
                                         .usage = error.usage,
                                         .cost = cost});
    return;
  }
  Generated generated{.attempt = letter.attempt,
                      .text = std::move(result->text),
                      .finish = result->finish,
                      .usage = result->usage,
                      .cost = cost};
  std::vector<Event> meaning = read_answer(progress_, generated);
  events.emplace_back(std::move(generated));
  std::move(meaning.begin(), meaning.end(), std::back_inserter(events));
}

Turn::Done Turn::perform(const Check& step) {
  const Round& attempt = progress_.attempts[static_cast<std::size_t>(step.attempt)];
  Amounts want = progress_.options.round;
  want.rounds = 0;
  want.tokens = 0;
  Budget round(want, budget_.get());
  Budget::Reservation reservation = round.reserve(want);
  const milliseconds limit = std::min(reservation.granted().sandbox, reservation.granted().wall);
  if (limit.count() <= 0) return {};
  CheckRequest request{.task = &progress_.task,
                       .program = attempt.program,
                       .tests = progress_.tests(),
                       .want_trace = progress_.options.feedback.trace || progress_.stuck || progress_.rung >= 0,
                       .time_limit = limit};
  std::vector<Event> started;
  started.emplace_back(CheckStarted{step.attempt});
  if (const Done done = commit(std::move(started)); !done) return done;
  const Clock::time_point start = Clock::now();
  tl::expected<Judgement, CheckError> judged = services_.checker->check(request, stop_);
  std::vector<Event> events;
  if (judged) {
    const Amounts cost{.wall = judged->elapsed.count() > 0 ? judged->elapsed : since(start), .sandbox = judged->sandbox};
    events.emplace_back(Checked{.attempt = step.attempt, .judgement = *std::move(judged), .cost = cost});
  } else {
    CheckError& error = judged.error();
    if (stop_.stop_requested()) {
      error.kind = CheckError::Kind::cancelled;
    } else if (error.kind == CheckError::Kind::cancelled) {
      error.kind = CheckError::Kind::infrastructure;
    }
    events.emplace_back(CheckFailed{.attempt = step.attempt,
                                    .kind = error.kind,
                                    .detail = to_valid_utf8(error.detail),
                                    .cost = {.wall = since(start)}});
  }
  return commit(std::move(events), &reservation);
}

Turn::Done Turn::perform(const NoteStuck& step) {
  std::vector<Event> events;
  events.emplace_back(Stuck{step.reason, step.attempt});
  return commit(std::move(events));
}

Turn::Done Turn::perform(const Climb& step) {
  Climbed event = climbed(progress_, step, left());
  budget_->extend(event.grant);
  std::vector<Event> events;
  events.emplace_back(std::move(event));
  return commit(std::move(events));
}

Turn::Done Turn::perform(const End& step) {
  if (step.outcome != Outcome::cancelled) {
    if (const Done done = score(); !done) return done;
  }
  Ended event = ended(progress_, step, left());
  const bool answered = progress_.round.purpose == Purpose::hand || progress_.declined;
  if (answered && progress_.end) {
    event.escalation = progress_.end->escalation;  // the person's answer has been dealt with, or goes back to them
  } else if (step.outcome == Outcome::handed_over && services_.journal != nullptr) {
    event.escalation = "e" + random_hex(6);
  }
  std::vector<Event> events;
  events.emplace_back(std::move(event));
  return commit(std::move(events));
}

/// Hidden tests decide nothing and cost the task nothing: they only say how good the end result is. They take no longer than a
/// minute or one check, and no longer than the whole task might.
Turn::Done Turn::score() {
  const Round* best = progress_.best();
  if (best == nullptr || progress_.task.hidden.empty()) return {};
  if (progress_.scored && progress_.scored->attempt == best->attempt) return {};
  const CheckRequest request{.task = &progress_.task,
                             .program = best->program,
                             .tests = progress_.task.hidden,
                             .time_limit = std::min(std::max(kScoreTime, progress_.options.round.sandbox), progress_.options.task.wall)};
  tl::expected<Judgement, CheckError> judged = services_.checker->check(request, stop_);
  if (!judged) return {};
  std::vector<Event> events;
  events.emplace_back(Scored{best->attempt, *std::move(judged)});
  return commit(std::move(events));
}

}  // namespace fixpoint::agent::detail
