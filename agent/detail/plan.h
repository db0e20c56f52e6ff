#pragma once

#include <vector>

#include "agent/event.h"
#include "agent/progress.h"

// What follows from a session's events alone: the loop writes these events, and a replay checks that they come out the same.
namespace fixpoint::agent::detail {

[[nodiscard]] RoundStarted round_started(const Progress& progress, const StartRound& step, const Amounts& left);

/// The generation of one draft of the current round, with its whole prompt; `attempt` is its new id.
[[nodiscard]] GenerationStarted generation_started(const Progress& progress, int attempt, int draft, std::int64_t max_tokens);

/// What a generated text means: words, a program, tests.
[[nodiscard]] std::vector<Event> read_answer(const Progress& progress, const Generated& generated);

[[nodiscard]] Climbed climbed(const Progress& progress, const Climb& step, const Amounts& left);

/// All but the escalation's id.
[[nodiscard]] Ended ended(const Progress& progress, const End& step, const Amounts& left);

}  // namespace fixpoint::agent::detail
