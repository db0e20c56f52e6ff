#include "evals/score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace fixpoint::evals {

double pass_at_k(const Tally& tally, std::int64_t k) {
  if (tally.samples - tally.correct < k) return 1;
  double all_fail = 1;
  for (std::int64_t i = tally.samples - tally.correct + 1; i <= tally.samples; ++i) {
    all_fail *= 1 - static_cast<double>(k) / static_cast<double>(i);
  }
  return 1 - all_fail;
}

tl::expected<double, std::string> mean_pass_at_k(std::span<const Tally> tallies, std::int64_t k) {
  if (k < 1) return tl::unexpected(std::string("k must be at least 1"));
  if (tallies.empty()) return tl::unexpected(std::string("there are no tasks"));
  double sum = 0;
  for (const Tally& tally : tallies) {
    if (tally.samples < k) {
      return tl::unexpected("pass@" + std::to_string(k) + " needs " + std::to_string(k) + " samples of every task; one has " +
                            std::to_string(tally.samples));
    }
    sum += pass_at_k(tally, k);
  }
  return sum / static_cast<double>(tallies.size());
}

Interval wilson(std::int64_t successes, std::int64_t trials, double z) {
  if (trials <= 0) return {};
  const double n = static_cast<double>(trials);
  const double p = static_cast<double>(successes) / n;
  const double centre = (p + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  // At the ends rounding must not keep the bound from being exact.
  return {successes <= 0 ? 0.0 : std::max(0.0, centre - half), successes >= trials ? 1.0 : std::min(1.0, centre + half)};
}

Interval bootstrap_mean(std::span<const double> values, std::uint64_t seed, int resamples, double level) {
  if (values.empty() || resamples < 1) return {};
  std::mt19937_64 random(seed);
  std::vector<double> means(static_cast<std::size_t>(resamples));
  for (double& mean : means) {
    double sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += values[random() % values.size()];
    mean = sum / static_cast<double>(values.size());
  }
  std::sort(means.begin(), means.end());
  const auto at = [&](double share) {
    const double position = share * static_cast<double>(means.size() - 1);
    return means[static_cast<std::size_t>(std::lround(position))];
  };
  return {at((1 - level) / 2), at((1 + level) / 2)};
}

double mcnemar_p(std::int64_t only_first, std::int64_t only_second) {
  const std::int64_t n = only_first + only_second;
  if (n == 0) return 1;
  const std::int64_t smaller = std::min(only_first, only_second);
  // P(X <= smaller) for X ~ Binomial(n, 1/2), in logarithms
  double sum = 0;
  for (std::int64_t i = 0; i <= smaller; ++i) {
    const double log_choose = std::lgamma(static_cast<double>(n) + 1) - std::lgamma(static_cast<double>(i) + 1) -
                              std::lgamma(static_cast<double>(n - i) + 1);
    sum += std::exp(log_choose - static_cast<double>(n) * std::log(2.0));
  }
  return std::min(1.0, 2 * sum);
}

std::size_t best_attempt(std::span<const AttemptScore> attempts, std::size_t count) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < count; ++i) {
    if (attempts[i].visible_passed_tests > attempts[best].visible_passed_tests) best = i;
  }
  return best;
}

std::vector<std::int64_t> pass_by_round(std::span<const TaskScore> tasks, int rounds) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(std::max(rounds, 0)) + 1, 0);
  for (const TaskScore& task : tasks) {
    for (std::size_t round = 0; round < out.size(); ++round) {
      const auto later = std::find_if(task.attempts.begin(), task.attempts.end(),
                                      [&](const AttemptScore& attempt) { return attempt.round > static_cast<int>(round); });
      const auto count = static_cast<std::size_t>(later - task.attempts.begin());
      if (count > 0 && task.attempts[best_attempt(task.attempts, count)].passed) ++out[round];
    }
  }
  return out;
}

std::int64_t visible_but_not_hidden(std::span<const TaskScore> tasks) {
  return std::count_if(tasks.begin(), tasks.end(),
                       [](const TaskScore& task) { return task.has_visible && task.visible_passed && !task.passed; });
}

std::vector<CurvePoint> tokens_curve(std::span<const TaskScore> tasks) {
  std::map<std::int64_t, std::int64_t> change;  // tokens → how many more tasks are solved from there on
  for (const TaskScore& task : tasks) {
    std::int64_t spent = 0;
    bool solved = false;
    for (std::size_t i = 0; i < task.attempts.size(); ++i) {
      spent += task.attempts[i].tokens;
      const bool now = task.attempts[best_attempt(task.attempts, i + 1)].passed;
      if (now != solved) change[spent] += now ? 1 : -1;
      solved = now;
    }
  }
  std::vector<CurvePoint> out;
  std::int64_t solved = 0;
  for (const auto& [tokens, more] : change) {
    solved += more;
    if (more != 0) out.push_back({tokens, static_cast<double>(solved) / static_cast<double>(tasks.size())});
  }
  return out;
}

namespace {

/// What a task's attempts are as draws from an urn.
struct Urn {
  std::int64_t samples = 0;
  std::int64_t tokens = 0;
  std::int64_t visible = 0;              // pass the visible tests
  std::int64_t correct_of_visible = 0;
  std::int64_t correct_of_others = 0;

  /// The chance that what k draws hand over passes.
  [[nodiscard]] double solved(std::int64_t k) const {
    const double some_visible = pass_at_k({samples, visible}, k);
    const double if_some = visible == 0 ? 0 : static_cast<double>(correct_of_visible) / static_cast<double>(visible);
    const std::int64_t others = samples - visible;
    const double if_none = others == 0 ? 0 : static_cast<double>(correct_of_others) / static_cast<double>(others);
    return some_visible * if_some + (1 - some_visible) * if_none;
  }
  /// The same of what so many tokens pay for.
  [[nodiscard]] double solved_with(std::int64_t budget) const {
    const std::int64_t draws = std::min(budget * samples / tokens, samples);
    return draws == 0 ? 0 : solved(draws);
  }
};

Urn urn_of(const TaskScore& task) {
  Urn urn;
  for (const AttemptScore& attempt : task.attempts) {
    ++urn.samples;
    urn.tokens += attempt.tokens;
    urn.visible += attempt.visible_passed ? 1 : 0;
    urn.correct_of_visible += attempt.visible_passed && attempt.passed ? 1 : 0;
    urn.correct_of_others += !attempt.visible_passed && attempt.passed ? 1 : 0;
  }
  return urn;
}

}  // namespace

std::vector<CurvePoint> resampling_curve(std::span<const TaskScore> tasks, int points) {
  std::vector<Urn> urns;
  for (const TaskScore& task : tasks) urns.push_back(urn_of(task));
  std::vector<CurvePoint> out;
  if (urns.empty()) return out;
  const std::int64_t most = std::min_element(urns.begin(), urns.end(), [](const Urn& a, const Urn& b) { return a.tokens < b.tokens; })->tokens;
  for (int point = 1; most > 0 && point <= points; ++point) {
    const std::int64_t budget = most * point / points;
    double sum = 0;
    for (const Urn& urn : urns) sum += urn.solved_with(budget);
    out.push_back({budget, sum / static_cast<double>(tasks.size())});
  }
  return out;
}

}  // namespace fixpoint::evals
