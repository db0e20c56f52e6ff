#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evals/record.h"
#include "evals/score.h"

namespace fixpoint::evals {

/// The numbers of a run, all from its records.
struct Summary {
  std::int64_t tasks = 0;
  std::int64_t passed = 0;            // tasks of which at least one program passes
  std::int64_t programs = 0;
  std::int64_t programs_passed = 0;
  Interval interval;                  // Wilson, of passed of tasks
  struct PassAt {
    double value = 0;
    Interval interval;                // bootstrap over tasks
  };
  std::map<std::int64_t, PassAt> pass_at;       // for each k that every task has samples for
  std::optional<std::int64_t> base_passed;      // programs; benchmarks with base and plus tests
  std::vector<std::int64_t> pass_by_round;      // tasks, by their first sample; one element for stored programs
  struct Group {
    std::int64_t tasks = 0;
    std::int64_t passed = 0;
    std::vector<std::int64_t> pass_by_round;
  };
  std::map<std::string, std::map<std::string, Group>> groups;  // by label and its value
  std::int64_t with_visible = 0;
  std::int64_t visible_but_not_hidden = 0;      // first samples
  std::map<std::string, std::int64_t> outcomes;
  std::map<std::string, std::int64_t> levels;
  std::int64_t repeated = 0;                    // timeouts that were judged again, alone
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t rounds = 0;                      // of all sessions, after their first drafts
  double sandbox_seconds = 0;                   // wall time of jails: attempts' visible tests, the final program's hidden ones
  double cpu_seconds = 0;
  double program_seconds = 0;                   // sum of the records' wall time
  double seconds = 0;                           // of the run; set by the caller
  std::vector<CurvePoint> tokens_curve;         // of sessions
  std::vector<CurvePoint> resampling_curve;     // of runs with several samples of one draft each
  std::string verdict_digest;
};

/// `rounds`: how many repair rounds a session could have; pass_by_round has at least one element more.
[[nodiscard]] Summary summarise(const std::vector<Record>& records, int rounds = 0);

/// The same with the rounds of the run's budget.
[[nodiscard]] Summary summarise(const std::vector<Record>& records, const RunInfo& info);

/// The scores' view of each task's first sample, in order.
[[nodiscard]] std::vector<TaskScore> session_scores(const std::vector<Record>& records);

/// What one of `tasks` took on average.
struct Cost {
  double rounds = 0;
  double prompt_tokens = 0;
  double cached_tokens = 0;
  double completion_tokens = 0;
  double sandbox_seconds = 0;
  double wall_seconds = 0;  // from a program's turn to its verdict; several go on at once
};
[[nodiscard]] Cost cost_of_one(const Summary& summary, std::int64_t tasks);

/// One object for machines: tasks, passed, pass_by_round, seconds and the rest.
[[nodiscard]] std::string to_json(const Summary& summary, const RunInfo& info);

/// One screen for people.
[[nodiscard]] std::string to_text(const Summary& summary, const RunInfo& info);

/// "82.9 %"
[[nodiscard]] std::string percent(double share);

}  // namespace fixpoint::evals
