#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

/// Numbers from verdicts. Pure functions: no files, no clocks; randomness only from the seed.
namespace fixpoint::evals {

/// Of `samples` programs for one task, `correct` pass.
struct Tally {
  std::int64_t samples = 0;
  std::int64_t correct = 0;
};

/// The unbiased estimate of "at least one of k passes" (Chen et al. 2021, arXiv:2107.03374): 1 - C(n-c, k) / C(n, k).
/// Precondition: 1 <= k <= samples, 0 <= correct <= samples.
[[nodiscard]] double pass_at_k(const Tally& tally, std::int64_t k);

/// The mean over tasks. Refused (with the reason) for k < 1, for no tasks and where a task has fewer than k samples:
/// there the estimate does not exist, and is not made up.
[[nodiscard]] tl::expected<double, std::string> mean_pass_at_k(std::span<const Tally> tallies, std::int64_t k);

struct Interval {
  double low = 0;
  double high = 1;
};

/// Wilson's score interval for `successes` of `trials` (E. B. Wilson 1927); z = 1.96 is 95 %. No trials: [0, 1].
[[nodiscard]] Interval wilson(std::int64_t successes, std::int64_t trials, double z = 1.959963984540054);

/// Percentile bootstrap of the mean of `values` (tasks are resampled). Empty: [0, 1].
[[nodiscard]] Interval bootstrap_mean(std::span<const double> values, std::uint64_t seed = 1, int resamples = 2000, double level = 0.95);

/// Whether the difference of two runs over the same tasks is more than luck: the two-sided exact McNemar test over the
/// tasks that only one of them solved.
[[nodiscard]] double mcnemar_p(std::int64_t only_first, std::int64_t only_second);

/// One attempt of a task, in the order of the session. A task without visible tests has `visible_passed` false throughout.
struct AttemptScore {
  int round = 0;  // 0: first drafts
  std::int64_t tokens = 0;
  int visible_passed_tests = 0;
  bool visible_passed = false;  // all of them
  bool passed = false;          // all hidden tests
};

/// What the scores need to know about one task's session.
struct TaskScore {
  bool passed = false;          // the end result passes the hidden tests
  bool has_visible = false;
  bool visible_passed = false;  // the end result passes all visible tests
  std::vector<AttemptScore> attempts;
};

/// The attempt that a session would hand over after its first `count` attempts: most visible tests passed, then the
/// earliest. Precondition: 1 <= count <= attempts.size().
[[nodiscard]] std::size_t best_attempt(std::span<const AttemptScore> attempts, std::size_t count);

/// Element r: how many tasks pass when the session ends after r repair rounds, with its best attempt until then.
/// `rounds` + 1 elements.
[[nodiscard]] std::vector<std::int64_t> pass_by_round(std::span<const TaskScore> tasks, int rounds);

/// Tasks whose end result passes every visible test and fails the hidden ones.
[[nodiscard]] std::int64_t visible_but_not_hidden(std::span<const TaskScore> tasks);

/// Share of tasks solved when each may spend this many tokens.
struct CurvePoint {
  std::int64_t tokens = 0;
  double pass_rate = 0;
};

/// A session stopped at t tokens hands over its best finished attempt: the share of those that pass, at each t where it
/// changes. Ascending in tokens; empty without tasks.
[[nodiscard]] std::vector<CurvePoint> tokens_curve(std::span<const TaskScore> tasks);

/// The same budget spent on independent samples: each task's attempts are taken as draws in random order, t pays for as many of them
/// as t / (mean tokens of one) has whole ones (a session's attempt, too, counts once it is finished), and the first that passes the
/// visible tests is handed over (the first of all where none does). The exact expectation over the orders, at `points` even steps up to
/// the smallest sum of a task's tokens: beyond it that task would need more samples than there are, of which, as of pass@k above the
/// samples, no unbiased estimate exists. Empty where a task has no samples.
[[nodiscard]] std::vector<CurvePoint> resampling_curve(std::span<const TaskScore> tasks, int points = 48);

}  // namespace fixpoint::evals
