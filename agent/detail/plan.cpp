#include "agent/detail/plan.h"

#include <algorithm>

#include "agent/extract.h"
#include "agent/prompt.h"

namespace fixpoint::agent::detail {
namespace {

constexpr std::size_t kMaxOwnTests = 8;
constexpr std::size_t kMaxExplanationBytes = 8'192;
// Whatever repeats itself at the branch temperature would do so again: each further draw is hotter.
constexpr double kRedrawHeat = 0.3, kMaxTemperature = 2.0;

/// splitmix64: a seed of its own for each attempt.
std::uint64_t seed_of(std::uint64_t session_seed, int attempt) {
  std::uint64_t z = session_seed + 0x9E3779B97F4A7C15ULL * (static_cast<std::uint64_t>(attempt) + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return (z ^ (z >> 31)) >> 1;  // fits a signed number, as other servers want it
}

std::string user_text(const Progress& progress, const RoundStarted& round, const FeedbackKinds& kinds) {
  switch (round.purpose) {
    case Purpose::draft: return task_message(progress.task);
    case Purpose::own_tests: return own_tests_message(progress.task);
    case Purpose::review: return review_message(progress.advice, progress.adviser);
    case Purpose::explanation:
      return explain_message(progress.attempts[static_cast<std::size_t>(*round.parent)], kinds);
    case Purpose::repair:
    case Purpose::hand: break;
  }
  return feedback_message(progress.attempts[static_cast<std::size_t>(*round.parent)], kinds, progress.advice,
                          progress.adviser);
}

}  // namespace

RoundStarted round_started(const Progress& progress, const StartRound& step, const Amounts& left) {
  return {.number = progress.rounds + (step.costs_round ? 1 : 0),
          .drafts = step.drafts,
          .purpose = step.purpose,
          .writer = step.writer,
          .parent = step.parent,
          .heated = step.heated,
          .add_trace = step.add_trace,
          .whole_history = step.whole_history,
          .uses_rung = step.uses_rung,
          .again = step.again,
          .cost = {.rounds = step.costs_round ? 1 : 0},
          .left = left};
}

GenerationStarted generation_started(const Progress& progress, int attempt, int draft, std::int64_t max_tokens) {
  const RoundStarted& round = progress.round;
  const LoopOptions& options = progress.options;
  GenerationStarted event{.attempt = attempt, .number = round.number, .draft = draft};
  Ask& ask = event.ask;
  if (round.again) {
    ask = progress.attempts[static_cast<std::size_t>(*round.again)].ask;
  } else {
    ask.purpose = round.purpose;
    ask.writer = round.writer;
    ask.parent = round.parent;
    ask.whole_history = round.whole_history;
    ask.feedback = options.feedback;
    ask.feedback.trace = ask.feedback.trace || round.add_trace;
    ask.top_p = options.top_p;
    ask.user_text = user_text(progress, round, ask.feedback);
  }
  ask.temperature = round.heated || draft > 0 ? options.branch_temperature : options.temperature;
  if (progress.redraws > 1) ask.temperature = std::min(ask.temperature + kRedrawHeat * (progress.redraws - 1), kMaxTemperature);
  ask.seed = seed_of(options.seed, attempt);
  ask.max_tokens = max_tokens;
  ask.prompt_sha256 = prompt_sha256(messages_for(progress, ask));
  return event;
}

std::vector<Event> read_answer(const Progress& progress, const Generated& generated) {
  const Ask& ask = progress.attempts[static_cast<std::size_t>(generated.attempt)].ask;
  std::vector<Event> events;
  if (ask.purpose == Purpose::own_tests) {
    TestsWritten written{.attempt = generated.attempt};
    for (std::string& code : extract_assertions(generated.text, kMaxOwnTests)) {
      written.tests.push_back({Assertion{std::move(code)}, TestOrigin::model});
    }
    events.emplace_back(std::move(written));
    return events;
  }
  if (ask.purpose == Purpose::explanation) {
    events.emplace_back(Explained{generated.attempt, bounded(generated.text, kMaxExplanationBytes)});
    return events;
  }
  const std::string header = find_header(progress.task.statement, progress.task.entry_point);
  Extracted found = extract(generated.text, progress.task.language, progress.task.entry_point, header);
  if (ask.purpose == Purpose::review && found.kind == ExtractKind::whole_text) {
    found = {.explanation = bounded(generated.text, kMaxExplanationBytes)};  // words, not a program
  }
  if (!found.explanation.empty()) events.emplace_back(Explained{generated.attempt, std::move(found.explanation)});
  if (found.kind != ExtractKind::none) {
    events.emplace_back(ProgramWritten{generated.attempt, std::move(found.program), found.kind});
  }
  return events;
}

Climbed climbed(const Progress& progress, const Climb& step, const Amounts& left) {
  const Rung& rung = progress.options.ladder[static_cast<std::size_t>(step.rung)];
  return {.rung = step.rung, .kind = rung.kind, .grant = grant_of(progress, step.rung), .left = left};
}

Ended ended(const Progress& progress, const End& step, const Amounts& left) {
  const Round* best = progress.best();
  return {.outcome = step.outcome,
          .basis = step.basis,
          .best = best == nullptr ? std::nullopt : std::optional(best->attempt),
          .detail = step.detail,
          .spent = progress.spent,
          .left = left,
          .usage = progress.usage};
}

}  // namespace fixpoint::agent::detail
