#include "evals/score.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace fixpoint::evals {
namespace {

double choose(std::int64_t n, std::int64_t k) {
  if (k > n) return 0;
  double out = 1;
  for (std::int64_t i = 0; i < k; ++i) out = out * static_cast<double>(n - i) / static_cast<double>(i + 1);
  return out;
}

TEST(ScoreTest, PassAtKEqualsTheCombinatorialDefinition) {
  for (std::int64_t n = 1; n <= 20; ++n) {
    for (std::int64_t c = 0; c <= n; ++c) {
      for (std::int64_t k = 1; k <= n; ++k) {
        EXPECT_NEAR(pass_at_k({n, c}, k), 1 - choose(n - c, k) / choose(n, k), 1e-12) << n << ' ' << c << ' ' << k;
      }
    }
  }
}

TEST(ScoreTest, PassAtKRefusesKAboveTheSamplesOfAnyTask) {
  const std::vector<Tally> tallies{{10, 3}, {5, 5}};
  EXPECT_TRUE(mean_pass_at_k(tallies, 5));
  const auto refused = mean_pass_at_k(tallies, 6);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), "pass@6 needs 6 samples of every task; one has 5");
  EXPECT_FALSE(mean_pass_at_k(tallies, 0));
  EXPECT_FALSE(mean_pass_at_k({}, 1));
}

TEST(ScoreTest, WilsonIntervalsAgreeWithPublishedValues) {
  // E. B. Wilson's interval for 81 of 263 (R. G. Newcombe 1998, table I, method 3): 0.2553 to 0.3662.
  const Interval interval = wilson(81, 263);
  EXPECT_NEAR(interval.low, 0.2553, 5e-5);
  EXPECT_NEAR(interval.high, 0.3662, 5e-5);
  EXPECT_NEAR(wilson(0, 20).high, 0.1611, 5e-5);
  EXPECT_EQ(wilson(0, 0).low, 0);
  EXPECT_EQ(wilson(0, 0).high, 1);
}

TEST(ScoreTest, BootstrapCoversTheMeanAndRepeatsForASeed) {
  std::vector<double> values(200);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 4 == 0 ? 1 : 0;
  const Interval interval = bootstrap_mean(values, 7);
  EXPECT_LT(interval.low, 0.25);
  EXPECT_GT(interval.high, 0.25);
  EXPECT_NEAR(interval.high - interval.low, 2 * 1.96 * std::sqrt(0.25 * 0.75 / 200), 0.03);
  EXPECT_EQ(bootstrap_mean(values, 7).low, interval.low);
}

TEST(ScoreTest, McNemarIsTheExactBinomialTest) {
  EXPECT_DOUBLE_EQ(mcnemar_p(0, 0), 1);
  EXPECT_NEAR(mcnemar_p(0, 5), 2.0 / 32, 1e-12);
  EXPECT_NEAR(mcnemar_p(3, 9), 2 * (1 + 12 + 66 + 220) / 4096.0, 1e-12);
  EXPECT_DOUBLE_EQ(mcnemar_p(4, 4), 1);
}

TaskScore task_of(std::vector<AttemptScore> attempts) {
  TaskScore task;
  task.has_visible = true;
  task.attempts = std::move(attempts);
  const AttemptScore& best = task.attempts[best_attempt(task.attempts, task.attempts.size())];
  task.passed = best.passed;
  task.visible_passed = best.visible_passed;
  return task;
}

TEST(ScoreTest, PassByRoundTakesTheBestAttemptSoFar) {
  const std::vector<TaskScore> tasks{
      task_of({{0, 10, 1, true, true}}),                                                    // at once
      task_of({{0, 10, 0, false, false}, {1, 10, 1, true, true}}),                          // by round 1
      task_of({{0, 10, 1, false, true}, {1, 10, 2, true, false}}),                          // a repair for the visible test lost the hidden one
      task_of({{0, 10, 0, false, false}, {1, 10, 0, false, true}, {2, 10, 0, false, false}}),  // never better by the visible tests
  };
  EXPECT_EQ(pass_by_round(tasks, 2), (std::vector<std::int64_t>{2, 2, 2}));
  EXPECT_EQ(visible_but_not_hidden(tasks), 1);
}

TEST(ScoreTest, TokensCurveStepsWhereTheEndResultChanges) {
  const std::vector<TaskScore> tasks{task_of({{0, 10, 1, true, true}}), task_of({{0, 20, 0, false, false}, {1, 30, 1, true, true}})};
  const auto curve = tokens_curve(tasks);
  ASSERT_EQ(curve.size(), 2u);
  EXPECT_EQ(curve[0].tokens, 10);
  EXPECT_DOUBLE_EQ(curve[0].pass_rate, 0.5);
  EXPECT_EQ(curve[1].tokens, 50);
  EXPECT_DOUBLE_EQ(curve[1].pass_rate, 1.0);
}

TEST(ScoreTest, ResamplingCurveEqualsTheAverageOverAllOrders) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<AttemptScore> attempts(1 + random() % 5);
    for (AttemptScore& attempt : attempts) {
      attempt.tokens = 10;
      attempt.visible_passed = random() % 2 == 0;
      attempt.visible_passed_tests = attempt.visible_passed ? 1 : 0;
      attempt.passed = random() % 2 == 0;
    }
    const TaskScore task = task_of(attempts);
    const int n = static_cast<int>(attempts.size());
    const auto curve = resampling_curve(std::vector<TaskScore>{task}, n);
    ASSERT_EQ(curve.size(), attempts.size());
    std::vector<std::size_t> order(attempts.size());
    std::vector<double> solved(attempts.size(), 0);
    std::iota(order.begin(), order.end(), 0);
    double orders = 0;
    do {
      ++orders;
      std::vector<AttemptScore> drawn;
      for (std::size_t i = 0; i < order.size(); ++i) {
        drawn.push_back(attempts[order[i]]);
        solved[i] += drawn[best_attempt(drawn, drawn.size())].passed ? 1 : 0;
      }
    } while (std::next_permutation(order.begin(), order.end()));
    for (std::size_t i = 0; i < curve.size(); ++i) EXPECT_NEAR(curve[i].pass_rate, solved[i] / orders, 1e-9);
  }
}

TEST(ScoreTest, ResamplingCurveEndsWhereTheFirstTaskRunsOutOfSamples) {
  const AttemptScore wrong{.tokens = 10};
  AttemptScore right{.tokens = 30, .visible_passed_tests = 1, .visible_passed = true, .passed = true};
  // 20 tokens of the first task, 90 of the second.
  const std::vector<TaskScore> tasks{task_of({wrong, wrong}), task_of({right, right, right})};
  const auto curve = resampling_curve(tasks, 2);
  ASSERT_EQ(curve.size(), 2U);
  EXPECT_EQ(curve.back().tokens, 20);
  EXPECT_EQ(curve[0].pass_rate, 0);
  EXPECT_EQ(curve[1].pass_rate, 0) << "20 tokens do not pay for a draft of the second task, and a part of one is worth nothing";
  EXPECT_TRUE(resampling_curve(std::vector<TaskScore>{task_of({right}), TaskScore{}}, 2).empty()) << "nothing is known of a task without samples";
  EXPECT_TRUE(resampling_curve(std::vector<TaskScore>{}, 2).empty());
}

TEST(ScoreTest, ResamplingCurveCountsWhatIsFinishedAsTheCurveOfSessionsDoes) {
  AttemptScore right{.tokens = 30, .visible_passed_tests = 1, .visible_passed = true, .passed = true};
  const std::vector<TaskScore> tasks{task_of({right, right, right})};
  const auto sessions = tokens_curve(std::vector<TaskScore>{task_of({right})});
  const auto resampled = resampling_curve(tasks, 90);
  const auto first = std::find_if(resampled.begin(), resampled.end(), [](const CurvePoint& point) { return point.pass_rate > 0; });
  ASSERT_NE(first, resampled.end());
  EXPECT_EQ(first->tokens, sessions[0].tokens);
  EXPECT_EQ(first->pass_rate, sessions[0].pass_rate);
}

}  // namespace
}  // namespace fixpoint::evals
