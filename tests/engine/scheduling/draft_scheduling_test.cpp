#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/engine/scheduling/driver.h"

namespace fixpoint::engine {
namespace {

using testing::Driver;
using testing::joined;
using testing::random_tokens;

/// The tokens that the model will write, wrong from the `right`-th on.
std::vector<TokenId> guess(const Driver& driver, const Sequence& sequence, int right, int length) {
  std::vector<TokenId> draft = driver.expected({sequence.tokens().begin(), sequence.tokens().end()}, length);
  for (auto i = static_cast<std::size_t>(right); i < draft.size(); ++i) draft[i] = (draft[i] + 1) % 64;
  return draft;
}

TEST(DraftSchedulingTest, RightDraftsSaveStepsAndChangeNoToken) {
  const auto prompt = random_tokens(9, 1);
  for (int right = 0; right <= 6; ++right) {
    Driver driver({.scheduler = {.max_running = 2, .max_step_tokens = 64}});
    driver.draft = [&](const Sequence& sequence) { return guess(driver, sequence, right, 6); };
    const auto id = driver.add(prompt, 29);
    driver.run();
    EXPECT_EQ(driver.result(id).output, driver.expected(prompt, 29));
    // One token of the prefill, then one more than was right in each step.
    EXPECT_EQ(driver.steps(), 1 + (28 + right) / (right + 1)) << right;
  }
}

TEST(DraftSchedulingTest, BlocksOfWrongDraftsGoBackAtOnce) {
  Driver driver({.num_blocks = 64, .block_size = 4, .scheduler = {.max_running = 2, .max_step_tokens = 64}});
  driver.draft = [&](const Sequence& sequence) { return guess(driver, sequence, 1, 20); };
  const auto id = driver.add(random_tokens(9, 1), 30);
  driver.step();
  while (driver.alive(id)) {
    const Sequence& sequence = driver.sequence(id);
    EXPECT_EQ(sequence.computed(), sequence.num_tokens() - 1);
    EXPECT_EQ(static_cast<int>(sequence.blocks().size()), driver.cache.blocks_for(sequence.computed()));
    EXPECT_EQ(driver.cache.pool().held_count(), static_cast<int>(sequence.blocks().size()));
    driver.step();
  }
}

TEST(DraftSchedulingTest, WrongDraftsAreNeverFoundByAnybody) {
  Driver driver({.num_blocks = 64, .block_size = 4, .scheduler = {.max_running = 2, .max_step_tokens = 64}});
  driver.draft = [&](const Sequence& sequence) { return guess(driver, sequence, 2, 15); };
  const auto prompt = random_tokens(10, 1);
  const auto written = driver.expected(prompt, 20);
  driver.add(prompt, 20);
  driver.run();
  // Text that agrees with what was written, and then with what was drafted.
  for (int agree = 0; agree <= 20; ++agree) {
    auto text = joined(prompt, std::span(written).first(static_cast<std::size_t>(agree)));
    for (int i = agree; i < 20; ++i) text.push_back((written[static_cast<std::size_t>(i)] + 1) % 64);
    const auto id = driver.add(text, 3);
    driver.run();
    EXPECT_EQ(driver.result(id).output, driver.expected(text, 3));
    EXPECT_LE(driver.result(id).cached_tokens, 10 + agree);
  }
}

TEST(DraftSchedulingTest, WrongDraftsTakeNoBlockAndNoStepFromAnybody) {
  struct Course {
    int preemptions = 0, steps = 0;
    bool operator==(const Course&) const = default;
  };
  // From pools that hold one sequence to pools that hold all.
  for (int num_blocks = 6; num_blocks <= 24; ++num_blocks) {
    const auto course = [&](bool drafts) {
      Driver driver({.num_blocks = num_blocks, .block_size = 4, .scheduler = {.max_running = 4, .max_step_tokens = 64}});
      if (drafts) driver.draft = [&](const Sequence& sequence) { return guess(driver, sequence, 0, 30); };
      for (std::uint64_t i = 0; i < 4; ++i) driver.add(random_tokens(11, i), 12);
      driver.run();
      for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(driver.result(i + 1).output, driver.expected(random_tokens(11, i), 12));
      return Course{static_cast<int>(driver.scheduler.counters().preemptions), driver.steps()};
    };
    EXPECT_EQ(course(true), course(false)) << num_blocks << " blocks";
  }
}

TEST(DraftSchedulingTest, DraftsKeepTheStepsLimitAndTheSequencesLength) {
  Driver driver({.num_blocks = 64, .scheduler = {.max_running = 4, .max_step_tokens = 9}});
  driver.draft = [&](const Sequence& sequence) { return guess(driver, sequence, 30, 30); };
  for (std::uint64_t i = 0; i < 4; ++i) driver.add(random_tokens(3, i), 12);
  driver.on_plan = [](const StepPlan& plan) { EXPECT_LE(plan.tokens, 9); };
  driver.run();
  EXPECT_LE(*std::max_element(driver.step_tokens.begin(), driver.step_tokens.end()), 9);
  for (SequenceId id = 1; id <= 4; ++id) EXPECT_EQ(driver.result(id).output.size(), 12U);
}

TEST(DraftSchedulingTest, RowsOfLogitsAreBounded) {
  Driver driver({.num_blocks = 200, .scheduler = {.max_running = 3, .max_step_tokens = 512}});
  driver.draft = [&](const Sequence&) { return std::vector<TokenId>(200, 1); };
  int rows = 0;
  driver.model.on_forward = [&](const StepInput& input) { rows = std::max(rows, static_cast<int>(input.logit_rows.size())); };
  for (std::uint64_t i = 0; i < 3; ++i) driver.add(random_tokens(5, i), 250);
  for (int i = 0; i < 20; ++i) driver.step();
  EXPECT_EQ(rows, kRowsForDrafts);
}

TEST(DraftSchedulingTest, PrefillsAreNotDraftedForAndComeBeforeDrafts) {
  Driver driver({.num_blocks = 64, .block_size = 4, .scheduler = {.max_running = 4, .max_step_tokens = 16}});
  driver.draft = [&](const Sequence& sequence) { return guess(driver, sequence, 0, 30); };
  driver.add(random_tokens(5, 1), 20);
  driver.step();
  const auto late = driver.add(random_tokens(30, 2), 2);
  driver.step();
  EXPECT_EQ(driver.sequence(late).computed(), 15) << "all but the other's one token";
  driver.step();
  EXPECT_EQ(driver.sequence(late).computed(), 30);
}

TEST(DraftSchedulingTest, OutputThatWasSpeculatedIsReusedLikeAnyOther) {
  Driver driver({.num_blocks = 64, .block_size = 4, .scheduler = {.max_running = 2, .max_step_tokens = 64}});
  const auto prompt = random_tokens(10, 1);
  driver.draft = [&](const Sequence& sequence) { return guess(driver, sequence, 7, 9); };
  const auto first = driver.add(prompt, 20);
  driver.run();
  const auto again = driver.add(joined(prompt, driver.result(first).output), 4);
  driver.run();
  EXPECT_EQ(driver.result(again).cached_tokens, 29) << "all but the last token, which nobody computed";
}

}  // namespace
}  // namespace fixpoint::engine
