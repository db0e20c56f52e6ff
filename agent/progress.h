#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/escalation.h"
#include "agent/event.h"
#include "agent/round.h"
#include "agent/task.h"

namespace fixpoint::agent {

/// Generations or checks that do not work at all, one after the other, before the loop gives up.
inline constexpr int kMaxFailuresInRow = 3;

/// Where a session stands: a fold over its events. Whoever reads the same events arrives at the same progress, whether
/// they come from a running loop or from the journal after a crash.
struct Progress {
  Task task;
  LoopOptions options;
  std::vector<Round> attempts;
  std::vector<Test> own_tests;

  RoundStarted round;              ///< the current or last round
  std::vector<int> round_attempts; ///< its attempts
  bool round_open = false;         ///< a round has started (whether or not it is done)
  int redraws = 0;                 ///< how often its question has been asked again
  int rounds = 0;                  ///< repairs so far
  int rounds_unattended = 0;       ///< repairs since a person last decided something

  int rung = -1;                   ///< index in options.ladder; -1 before the first
  int rung_uses = 0;
  int highest_rung = -1;           ///< what has been taken once gives no further budget
  std::optional<Stuck> stuck;      ///< noted, and not acted on yet
  std::string advice;              ///< an explainer's or a person's words for the next repair
  Writer adviser = Writer::explainer;

  int failures_in_row = 0;         ///< generations or checks that did not work at all
  std::string failure_detail;      ///< of the last of them
  Amounts spent;
  Amounts granted;                 ///< beyond options.task, by the ladder or by people
  Usage usage;
  std::optional<Scored> scored;
  bool in_batch = false;
  bool ended = false;
  std::optional<Ended> end;        ///< the last end, also after a resumption
  std::optional<Declined> declined;

  void apply(const Event& event);

  /// The tests that decide: the given ones, or the model's own where there are none.
  [[nodiscard]] const std::vector<Test>& tests() const { return task.visible.empty() ? own_tests : task.visible; }
  /// What the task may spend in all. Rounds stay within the hard cap between two decisions of people.
  [[nodiscard]] Amounts limits() const { return options.task + granted; }
  /// The last one of them, or the best of the first drafts: what the next repair starts from.
  [[nodiscard]] const Round* focus() const;
  /// Most tests passed, then the earliest; a program that was never judged comes after all that were.
  [[nodiscard]] const Round* best() const;
};

}  // namespace fixpoint::agent
