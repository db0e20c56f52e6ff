#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <variant>
#include <vector>

#include "agent/budget.h"
#include "agent/round.h"

namespace fixpoint::agent {

enum class RungKind : std::uint8_t { branch, specialist, explainer, person };
[[nodiscard]] std::string_view to_string(RungKind kind);

/// One rung of the ladder that an operator configures.
struct Rung {
  RungKind kind = RungKind::branch;
  int attempts = 2;  ///< how often this rung is used before the next one is taken
  Amounts grant;     ///< added to the task's budget when the rung is taken; logged
  bool operator==(const Rung&) const = default;
};

/// Everything that decides how a session runs; recorded with it.
struct LoopOptions {
  Amounts task{.rounds = 3, .tokens = 16'384, .wall = std::chrono::minutes(10), .sandbox = std::chrono::minutes(2)};
  /// One round: each of its generations, and its checks.
  Amounts round{.rounds = 1, .tokens = 2'048, .wall = std::chrono::minutes(3), .sandbox = std::chrono::seconds(20)};
  int drafts = 1;
  FeedbackKinds feedback;
  double temperature = 0.0;         ///< of the first draft and of repairs
  double branch_temperature = 0.8;  ///< of further drafts and of branches
  double top_p = 1.0;
  std::uint64_t seed = 0;
  bool own_tests = false;  ///< without given tests, let the model write some (Python)
  std::vector<Rung> ladder{{.kind = RungKind::branch, .attempts = 2}};
  bool operator==(const LoopOptions&) const = default;
};

enum class StuckReason : std::uint8_t { same_program, same_failure, oscillation };
[[nodiscard]] std::string_view to_string(StuckReason reason);

/// A program that had been tried before tells nothing new: its question is asked so many times more, at the branch temperature, at
/// the cost of tokens and time, not of a round.
inline constexpr int kMaxRedraws = 2;

/// How a turn ended.
enum class Outcome : std::uint8_t {
  solved,
  handed_over,       ///< to a person; the session goes on when they answer
  budget_exhausted,
  stuck,             ///< the ladder has no rung left
  declined,          ///< the person did not want it either
  cancelled,
  failed,            ///< a model or the sandbox does not work
};
[[nodiscard]] std::string_view to_string(Outcome outcome);

/// What the claim "solved" rests on.
enum class Basis : std::uint8_t { none, tests, own_tests, review, person };
[[nodiscard]] std::string_view to_string(Basis basis);

struct Progress;
struct Round;

/// What the loop does next. Exactly one of these.
struct StartRound {
  Purpose purpose = Purpose::draft;
  Writer writer = Writer::model;
  std::optional<int> parent;
  int drafts = 1;
  bool heated = false;       ///< branch temperature instead of the usual one
  bool add_trace = false;    ///< the trace although the options leave it out
  bool whole_history = true; ///< false after a prompt that was too long for the model
  bool uses_rung = false;
  bool costs_round = true;   ///< first drafts, own tests, the explainer's words and what is drawn again do not
  std::optional<int> again;  ///< the attempt whose question is asked once more, since its program was there before
};
struct Generate {
  std::vector<int> drafts;  ///< those of the current round that are not there yet
};
struct Check {
  int attempt = 0;
};
struct NoteStuck {
  StuckReason reason = StuckReason::same_program;
  int attempt = 0;
};
struct Climb {
  int rung = 0;
};
struct End {
  Outcome outcome = Outcome::failed;
  Basis basis = Basis::none;
  std::string detail;
};
using Step = std::variant<StartRound, Generate, Check, NoteStuck, Climb, End>;

/// "branch:2,explainer:2+1,specialist:2+2,person": kinds in order, each with its attempts (1 where not said) and the rounds that it
/// grants (none where not said). Error: what is wrong with which rung.
[[nodiscard]] tl::expected<std::vector<Rung>, std::string> parse_ladder(std::string_view text);

/// The budget that comes with a rung: nothing the second time.
[[nodiscard]] Amounts grant_of(const Progress& progress, int rung);

/// Pure: the same progress and the same budget give the same step.
[[nodiscard]] Step next_step(const Progress& progress, const Amounts& left);

/// Whether the last attempt shows that asking on would not help: its program was there before (just now, or earlier: going
/// back and forth), or another program fails in the same way.
[[nodiscard]] std::optional<StuckReason> detect_stuck(const Progress& progress);

/// A review found nothing wrong with its parent's program: it says so, or writes the same program again.
[[nodiscard]] bool review_accepted(const Progress& progress, const Round& review);

}  // namespace fixpoint::agent
