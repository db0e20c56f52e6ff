#include "agent/escalation.h"

#include <algorithm>

#include "agent/detail/names.h"
#include "agent/progress.h"
#include "agent/prompt.h"

namespace fixpoint::agent {

std::string_view to_string(RungKind kind) { return detail::name_of(kind); }
std::string_view to_string(StuckReason reason) { return detail::name_of(reason); }
std::string_view to_string(Outcome outcome) { return detail::name_of(outcome); }
std::string_view to_string(Basis basis) { return detail::name_of(basis); }

namespace {

constexpr int kMaxDrafts = 16;

const Round& attempt_of(const Progress& progress, int id) { return progress.attempts[static_cast<std::size_t>(id)]; }

const Rung* rung_at(const Progress& progress, int index) {
  if (index < 0 || index >= static_cast<int>(progress.options.ladder.size())) return nullptr;
  return &progress.options.ladder[static_cast<std::size_t>(index)];
}

bool worth_another_try(GenerateError::Kind kind) {
  return kind == GenerateError::Kind::timeout || kind == GenerateError::Kind::unavailable;
}

/// The latest attempt of this round for a draft, if there is one.
const Round* draft_attempt(const Progress& progress, int draft) {
  const Round* found = nullptr;
  for (const int id : progress.round_attempts) {
    if (attempt_of(progress, id).draft == draft) found = &attempt_of(progress, id);
  }
  return found;
}

bool is_written(const Round* attempt) { return attempt != nullptr && attempt->finished && !attempt->error; }

std::vector<int> missing_drafts(const Progress& progress) {
  if (progress.round.purpose == Purpose::hand) return {};
  std::vector<int> missing;
  bool any_written = false;
  for (int draft = 0; draft < progress.round.drafts; ++draft) {
    const Round* attempt = draft_attempt(progress, draft);
    any_written = any_written || is_written(attempt);
    const bool again = attempt == nullptr || !attempt->finished;
    const bool retry = attempt != nullptr && attempt->error && worth_another_try(*attempt->error);
    if (again || (retry && !any_written)) missing.push_back(draft);
  }
  if (!any_written) return missing;
  // One draft that works is enough: those that failed are not asked again.
  std::erase_if(missing, [&](int draft) {
    const Round* attempt = draft_attempt(progress, draft);
    return attempt != nullptr && attempt->error;
  });
  return missing;
}

/// The error that ended every generation of this round, if so.
const Round* failed_round(const Progress& progress) {
  const Round* failed = nullptr;
  for (const int id : progress.round_attempts) {
    const Round& attempt = attempt_of(progress, id);
    if (is_written(&attempt) || !attempt.error) return nullptr;
    failed = &attempt;
  }
  return failed;
}

const Round* unchecked(const Progress& progress) {
  const Round* pending = nullptr;
  for (const int id : progress.round_attempts) {
    const Round& attempt = attempt_of(progress, id);
    if (attempt.passed() && attempt.judgement->total > 0) return nullptr;  // the others do not matter any more
    if (!attempt.finished || attempt.program.empty() || attempt.judgement || pending != nullptr) continue;
    if (attempt.ask.purpose == Purpose::review && review_accepted(progress, attempt)) continue;
    pending = &attempt;
  }
  return pending;
}

bool positive(const Amounts& left) {
  return left.tokens > 0 && left.wall.count() > 0 && left.sandbox.count() > 0;
}

std::string shortage(const Amounts& left) {
  if (left.tokens <= 0) return "no tokens are left";
  if (left.wall.count() <= 0) return "no time is left";
  if (left.sandbox.count() <= 0) return "no sandbox time is left";
  return "no repair rounds are left";
}

bool usable(int index, const Progress& progress, const Amounts& left) {
  const Rung& rung = *rung_at(progress, index);
  if (rung.kind == RungKind::person) return true;
  Amounts with_grant = left + grant_of(progress, index);
  with_grant.rounds = std::min(with_grant.rounds, kMaxRounds - progress.rounds_unattended);
  if (with_grant.rounds <= 0 || !positive(with_grant) || rung.attempts <= 0) return false;
  // More of the same does not help a loop that is not stuck but out of budget.
  return rung.kind != RungKind::branch || progress.stuck.has_value();
}

Step climb(const Progress& progress, const Amounts& left) {
  for (int next = progress.rung + 1; next < static_cast<int>(progress.options.ladder.size()); ++next) {
    if (usable(next, progress, left)) return Climb{next};
  }
  const bool out = left.rounds <= 0 || !positive(left);
  return End{.outcome = out ? Outcome::budget_exhausted : Outcome::stuck,
             .detail = out ? shortage(left) : "the rounds lead nowhere new"};
}

Purpose purpose_after(const Round& parent) { return parent.passed() ? Purpose::review : Purpose::repair; }

StartRound fresh_draft() { return {.purpose = Purpose::draft, .heated = true, .uses_rung = true}; }

/// The same failure of another program: the story goes on. The same program, also when drawn again: a new story.
StartRound branch(const Progress& progress, const Round& focus) {
  if (progress.rung_uses % 2 != 0 || progress.stuck->reason != StuckReason::same_failure) return fresh_draft();
  return {.purpose = purpose_after(focus), .parent = focus.attempt, .heated = true, .add_trace = true, .uses_rung = true};
}

/// The question of an attempt that wrote what had been tried before, as if it had not been answered.
StartRound again(const Round& repeated) {
  return {.purpose = repeated.ask.purpose,
          .writer = repeated.ask.writer,
          .parent = repeated.ask.parent,
          .heated = true,
          .whole_history = repeated.ask.whole_history,
          .costs_round = false,
          .again = repeated.attempt};
}

StartRound on_rung(RungKind kind, const Round& focus) {
  if (kind == RungKind::explainer) {
    return {.purpose = Purpose::explanation,
            .writer = Writer::explainer,
            .parent = focus.attempt,
            .add_trace = true,
            .uses_rung = true,
            .costs_round = false};
  }
  return {.purpose = purpose_after(focus),
          .writer = Writer::specialist,
          .parent = focus.attempt,
          .add_trace = true,
          .uses_rung = true};
}

StartRound first_round(const Progress& progress) {
  const bool writes_tests = progress.options.own_tests && progress.task.visible.empty() &&
                            progress.task.language == "python" && !progress.task.entry_point.empty();
  if (writes_tests && !progress.round_open) return {.purpose = Purpose::own_tests, .costs_round = false};
  return {.purpose = Purpose::draft, .drafts = std::clamp(progress.options.drafts, 1, kMaxDrafts), .costs_round = false};
}

std::optional<Step> solved(const Progress& progress, const Round& focus) {
  const Round* best = progress.best();
  if (best != nullptr && best->passed() && best->judgement->total > 0) {
    const bool own = progress.task.visible.empty();
    return End{.outcome = Outcome::solved,
               .basis = own ? Basis::own_tests : Basis::tests,
               .detail = own ? "the tests that the model wrote pass" : "the tests pass"};
  }
  if (!progress.tests().empty()) return std::nullopt;
  if (focus.ask.purpose == Purpose::review && review_accepted(progress, focus)) {
    return End{.outcome = Outcome::solved,
               .basis = Basis::review,
               .detail = "there are no tests; the model's own review found nothing wrong"};
  }
  if (focus.ask.purpose == Purpose::hand && focus.passed()) {
    return End{.outcome = Outcome::solved, .basis = Basis::person, .detail = "a person wrote it; there are no tests"};
  }
  return std::nullopt;
}

/// Every attempt of the round is written and judged: where to go from here.
Step decide(const Progress& progress, const Amounts& left) {
  if (progress.round.purpose == Purpose::own_tests) return first_round(progress);
  const Round* focus = progress.focus();
  if (focus == nullptr) return End{.outcome = Outcome::failed, .detail = "no program was written"};
  if (std::optional<Step> end = solved(progress, *focus)) return *std::move(end);
  const Rung* rung = rung_at(progress, progress.rung);
  if (focus->ask.purpose == Purpose::hand && progress.round.purpose == Purpose::hand) {
    return End{.outcome = Outcome::handed_over, .detail = "the submitted program does not pass"};
  }
  if (progress.round.purpose != Purpose::explanation && !progress.stuck && progress.advice.empty()) {
    if (const std::optional<StuckReason> reason = detect_stuck(progress)) return NoteStuck{*reason, focus->attempt};
  }
  const bool repeated = progress.stuck && progress.stuck->reason != StuckReason::same_failure;
  if (repeated && progress.redraws < kMaxRedraws && positive(left)) return again(*focus);
  if (left.rounds <= 0 || !positive(left)) return climb(progress, left);
  if (!progress.advice.empty()) {
    return StartRound{.purpose = purpose_after(*focus), .parent = focus->attempt};
  }
  const bool rung_left = rung != nullptr && progress.rung_uses < rung->attempts;
  if (rung != nullptr && rung->kind != RungKind::branch) {
    return rung_left ? Step(on_rung(rung->kind, *focus)) : climb(progress, left);
  }
  if (progress.stuck) return rung_left ? Step(branch(progress, *focus)) : climb(progress, left);
  return StartRound{.purpose = purpose_after(*focus), .parent = focus->attempt};
}

/// No generation of this round worked.
Step after_failure(const Progress& progress, const Round& failed, const Amounts& left) {
  const RoundStarted& round = progress.round;
  if (*failed.error == GenerateError::Kind::too_long && round.parent && round.whole_history) {
    return StartRound{.purpose = round.purpose,
                      .writer = round.writer,
                      .parent = round.parent,
                      .heated = round.heated,
                      .add_trace = round.add_trace,
                      .whole_history = false,
                      .costs_round = false};
  }
  if (round.purpose == Purpose::own_tests) return first_round(progress);
  // The loop goes on without a helper that does not work.
  if (round.writer != Writer::model) return climb(progress, left);
  return End{.outcome = Outcome::failed,
             .detail = "the model gave no answer (" + std::string(to_string(*failed.error)) + "): " + failed.error_detail};
}

}  // namespace

Step next_step(const Progress& progress, const Amounts& budget_left) {
  Amounts left = budget_left;
  left.rounds = std::min(left.rounds, kMaxRounds - progress.rounds_unattended);
  if (progress.declined) {
    return End{.outcome = Outcome::declined,
               .detail = "declined by " + progress.declined->by + ": " + progress.declined->reason};
  }
  const Rung* rung = rung_at(progress, progress.rung);
  if (rung != nullptr && rung->kind == RungKind::person) {
    const std::string why = progress.stuck ? "the rounds lead nowhere new" : shortage(left);
    return End{.outcome = Outcome::handed_over, .detail = why + ": a person is asked"};
  }
  if (!progress.round_open) {
    return positive(left) ? Step(first_round(progress)) : climb(progress, left);
  }
  if (progress.failures_in_row >= kMaxFailuresInRow) {
    const Round* failed = failed_round(progress);
    return End{.outcome = Outcome::failed,
               .detail = (failed != nullptr ? "the model does not answer: " : "the program can't be checked: ") +
                         progress.failure_detail};
  }
  std::vector<int> missing = missing_drafts(progress);
  if (!missing.empty()) {
    return left.tokens > 0 && left.wall.count() > 0 ? Step(Generate{std::move(missing)}) : climb(progress, left);
  }
  if (const Round* pending = unchecked(progress)) {
    return left.sandbox.count() > 0 && left.wall.count() > 0 ? Step(Check{pending->attempt}) : climb(progress, left);
  }
  if (const Round* failed = failed_round(progress)) return after_failure(progress, *failed, left);
  return decide(progress, left);
}

Amounts grant_of(const Progress& progress, int rung) {
  return rung > progress.highest_rung ? rung_at(progress, rung)->grant : Amounts{};
}

std::optional<StuckReason> detect_stuck(const Progress& progress) {
  const Round* focus = progress.focus();
  if (focus == nullptr || focus->number == 0 || focus->ask.purpose == Purpose::hand) return std::nullopt;
  const Round* before = nullptr;  // the candidate just before
  const Round* same = nullptr;    // the latest with the same program
  for (const Round& attempt : progress.attempts) {
    if (attempt.attempt >= focus->attempt || attempt.number == focus->number) continue;
    if (attempt.ask.purpose == Purpose::own_tests || attempt.ask.purpose == Purpose::explanation || !is_written(&attempt)) {
      continue;
    }
    before = &attempt;
    if (!focus->program_key.empty() && attempt.program_key == focus->program_key) same = &attempt;
  }
  if (same != nullptr) {
    return same == before || same->attempt == focus->ask.parent ? StuckReason::same_program : StuckReason::oscillation;
  }
  const Round* compared = focus->ask.parent ? &attempt_of(progress, *focus->ask.parent) : before;
  if (compared == nullptr || focus->passed()) return std::nullopt;
  if (focus->program.empty()) {
    return compared->program.empty() ? std::optional(StuckReason::same_failure) : std::nullopt;
  }
  const bool judged = focus->judgement && compared->judgement;
  return judged && focus->failure_key == compared->failure_key ? std::optional(StuckReason::same_failure) : std::nullopt;
}

bool review_accepted(const Progress& progress, const Round& review) {
  if (!review.ask.parent || !review.finished || review.error) return false;
  const Round& parent = attempt_of(progress, *review.ask.parent);
  if (!parent.passed()) return false;
  if (!review.program.empty()) return review.program_key == parent.program_key;
  return review_accepts(review.text);
}

}  // namespace fixpoint::agent
