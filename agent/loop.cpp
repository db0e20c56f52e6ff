#include "agent/loop.h"

#include "agent/detail/digest.h"
#include "agent/detail/turn.h"
#include "agent/journal.h"
#include "agent/prompt.h"

namespace fixpoint::agent {
namespace {

std::string name_of(const Generator* generator) { return generator == nullptr ? std::string() : generator->name(); }

std::optional<std::string> unusable(const LoopOptions& options, const Services& services) {
  if (services.model == nullptr || services.checker == nullptr) return "no model or no checker";
  if (options.task.rounds < 0 || options.task.rounds > kMaxRounds) {
    return "rounds: " + std::to_string(options.task.rounds) + " is not within 0.." + std::to_string(kMaxRounds);
  }
  if (options.drafts < 1 || options.drafts > 16) return "drafts: " + std::to_string(options.drafts) + " is not within 1..16";
  for (const Rung& rung : options.ladder) {
    if (rung.kind == RungKind::specialist && services.specialist == nullptr) return "the ladder names a specialist, but there is none";
    if (rung.kind == RungKind::explainer && services.explainer == nullptr) return "the ladder names an explainer, but there is none";
  }
  return std::nullopt;
}

LoopError from_journal(const JournalError& error) {
  const auto kind = error.kind == JournalError::Kind::unknown ? LoopError::Kind::unknown
                    : error.kind == JournalError::Kind::busy  ? LoopError::Kind::busy
                                                              : LoopError::Kind::journal;
  return {kind, error.detail};
}

/// Why a session can't go on; nothing if it can.
std::optional<LoopError> closed(const Progress& progress) {
  if (!progress.ended) return std::nullopt;
  const Outcome outcome = progress.end->outcome;
  if (outcome == Outcome::cancelled || outcome == Outcome::failed) return std::nullopt;
  const std::string waiting = outcome == Outcome::handed_over ? "it waits for a person (escalation " + progress.end->escalation + ")"
                                                              : "it has ended: " + std::string(to_string(outcome));
  return LoopError{LoopError::Kind::finished, waiting};
}

}  // namespace

std::string new_session_id() { return detail::random_hex(8); }

tl::expected<Result, LoopError> Loop::run(const Task& task, const LoopOptions& options, std::stop_token stop,
                                          const OnEvent& on_event, const std::string& name) {
  if (const std::optional<TaskError> error = validate(task)) {
    return tl::unexpected(LoopError{LoopError::Kind::invalid, error->message()});
  }
  if (const std::optional<std::string> error = unusable(options, services_)) {
    return tl::unexpected(LoopError{LoopError::Kind::invalid, *error});
  }
  if (const auto refusal = services_.checker != nullptr ? services_.checker->refusal(task.language) : std::nullopt) {
    return tl::unexpected(LoopError{LoopError::Kind::invalid, *refusal});
  }
  const std::string session = name.empty() ? new_session_id() : name;
  std::optional<SessionLock> lock;
  if (services_.journal != nullptr) {
    auto held = services_.journal->lock(session);
    if (!held) return tl::unexpected(from_journal(held.error()));
    lock = std::move(*held);
  }
  detail::Turn turn(services_, batch_, std::move(stop), on_event);
  const auto begun = turn.begin(session, {.task = task,
                                          .options = options,
                                          .prompt_version = std::string(kPromptVersion),
                                          .in_batch = batch_ != nullptr,
                                          .model = name_of(services_.model),
                                          .specialist = name_of(services_.specialist),
                                          .explainer = name_of(services_.explainer)});
  if (!begun) return tl::unexpected(begun.error());
  return turn.run();
}

tl::expected<Result, LoopError> Loop::resume(const std::string& session, std::stop_token stop, const OnEvent& on_event) {
  if (services_.journal == nullptr) return tl::unexpected(LoopError{LoopError::Kind::unknown, "there is no journal"});
  auto lock = services_.journal->lock(session);
  if (!lock) return tl::unexpected(from_journal(lock.error()));
  const auto events = services_.journal->events(session);
  if (!events) return tl::unexpected(from_journal(events.error()));
  Progress progress;
  for (const Stamped& stamped : *events) progress.apply(stamped.event);
  if (std::optional<LoopError> error = closed(progress)) return tl::unexpected(*std::move(error));
  if (const std::optional<std::string> error = unusable(progress.options, services_)) {
    return tl::unexpected(LoopError{LoopError::Kind::invalid, *error});
  }
  detail::Turn turn(services_, batch_, std::move(stop), on_event);
  const auto recalled = turn.recall(session, *events);
  if (!recalled) return tl::unexpected(recalled.error());
  return turn.run();
}

}  // namespace fixpoint::agent
