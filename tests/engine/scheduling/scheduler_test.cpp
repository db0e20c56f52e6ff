#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/engine/scheduling/driver.h"

namespace fixpoint::engine {
namespace {

using testing::Driver;
using testing::joined;
using testing::random_tokens;

TEST(SchedulerTest, OneSequenceIsPrefilledInChunksAndDecoded) {
  Driver driver({.scheduler = {.max_running = 8, .max_step_tokens = 16}});
  const auto prompt = random_tokens(37, 1);
  const auto id = driver.add(prompt, 5);
  driver.run();
  EXPECT_EQ(driver.result(id).output, driver.expected(prompt, 5));
  EXPECT_EQ(driver.step_tokens, (std::vector<int>{16, 16, 5, 1, 1, 1, 1}));
}

TEST(SchedulerTest, DecodeComesFirstAndPrefillTakesTheRestOfTheBudget) {
  Driver driver({.num_blocks = 256, .scheduler = {.max_running = 8, .max_step_tokens = 16}});
  for (int i = 0; i < 3; ++i) driver.add(random_tokens(2, static_cast<std::uint64_t>(i)), 50);
  driver.step();
  driver.add(random_tokens(100, 9), 1);
  driver.on_plan = [](const StepPlan& plan) {
    ASSERT_EQ(plan.chunks.size(), 4U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(plan.chunks[i].count, 1);
    EXPECT_EQ(plan.chunks[3].count, 13);
    EXPECT_EQ(plan.tokens, 16);
  };
  driver.step();
  driver.step();
}

// A running stream gets its token in every step, whatever arrives.
TEST(SchedulerTest, LongPromptsNeverStopARunningStream) {
  Driver driver({.num_blocks = 4096, .block_size = 16, .scheduler = {.max_running = 16, .max_step_tokens = 64}});
  const auto stream = driver.add(random_tokens(4, 1), 200);
  driver.step();
  for (std::uint64_t i = 0; i < 20; ++i) driver.add(random_tokens(800, 100 + i), 1);
  int before = driver.sequence(stream).num_tokens();
  while (driver.alive(stream)) {
    driver.step();
    if (!driver.alive(stream)) break;
    ASSERT_EQ(driver.sequence(stream).num_tokens(), ++before);
  }
}

TEST(SchedulerTest, APromptThatWasComputedIsNotComputedAgain) {
  Driver driver({});
  const auto prompt = random_tokens(22, 1);
  const auto cold = driver.add(prompt, 6);
  driver.run();
  const int computed = driver.computed_tokens;
  const auto warm = driver.add(prompt, 6);
  driver.run();
  EXPECT_EQ(driver.result(cold).output, driver.result(warm).output);
  EXPECT_EQ(driver.result(cold).cached_tokens, 0);
  EXPECT_EQ(driver.result(warm).cached_tokens, 21) << "all but the last token, whose logits are wanted";
  EXPECT_EQ(driver.computed_tokens - computed, 6);
}

// A full hit must leave one token to compute, at every length around the block size.
TEST(SchedulerTest, FullHitsComputeTheLastTokenAtEveryLength) {
  for (int length = 1; length <= 13; ++length) {
    Driver driver({});
    const auto prompt = random_tokens(length, 3);
    const auto cold = driver.add(prompt, 9);
    driver.run();
    const auto warm = driver.add(prompt, 9);
    driver.run();
    EXPECT_EQ(driver.result(warm).cached_tokens, length - 1);
    EXPECT_EQ(driver.result(warm).output, driver.result(cold).output);
    EXPECT_EQ(driver.result(warm).output, driver.expected(prompt, 9));
  }
}

TEST(SchedulerTest, GeneratedTokensAreReusedDownToTheToken) {
  Driver driver({});
  const auto prompt = random_tokens(10, 1);
  const auto first = driver.add(prompt, 9);
  driver.run();
  // The next round: the same text, the answer, something new.
  const auto answer = driver.result(first).output;
  const auto next = joined(joined(prompt, answer), random_tokens(7, 2));
  const auto second = driver.add(next, 5);
  driver.run();
  EXPECT_EQ(driver.result(second).cached_tokens, 10 + 8) << "everything but the last token of the answer, which was never computed";
  EXPECT_EQ(driver.result(second).output, driver.expected(next, 5));
}

TEST(SchedulerTest, DivergenceInsideABlockCopiesItAndLeavesTheOriginal) {
  Driver driver({.block_size = 8});
  const auto prompt = random_tokens(16, 1);
  driver.add(prompt, 2);
  driver.run();
  auto other = prompt;
  other[13] = (other[13] + 1) % 64;
  const auto diverged = driver.add(other, 6);
  driver.run();
  EXPECT_EQ(driver.result(diverged).cached_tokens, 13);
  EXPECT_EQ(driver.scheduler.counters().blocks_copied, 1U);
  EXPECT_EQ(driver.result(diverged).output, driver.expected(other, 6));
  const auto again = driver.add(prompt, 6);
  driver.run();
  EXPECT_EQ(driver.result(again).cached_tokens, 15);
  EXPECT_EQ(driver.result(again).output, driver.expected(prompt, 6));
}

TEST(SchedulerTest, EightClientsWithOneColdPrefixComputeItOnce) {
  Driver driver({.num_blocks = 512, .block_size = 16, .scheduler = {.max_running = 16, .max_step_tokens = 256}});
  const auto prefix = random_tokens(1000, 1);
  std::vector<SequenceId> ids;
  std::vector<std::vector<TokenId>> prompts;
  for (std::uint64_t i = 0; i < 8; ++i) {
    prompts.push_back(joined(prefix, random_tokens(5, 100 + i)));
    ids.push_back(driver.add(prompts.back(), 4));
  }
  driver.run();
  for (std::size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(driver.result(ids[i]).output, driver.expected(prompts[i], 4));
  // One whole prompt; of the others the part behind the last whole shared block; and the decoded tokens.
  EXPECT_LE(driver.computed_tokens, 1005 + 7 * (5 + 15) + 8 * 3);
  EXPECT_LE(driver.result(ids.back()).first_token_in_step, 4 + 2);
}

TEST(SchedulerTest, IdenticalPromptsShareAllTheirBlocks) {
  Driver driver({.num_blocks = 64, .block_size = 4, .scheduler = {.max_running = 8, .max_step_tokens = 64}});
  const auto prompt = random_tokens(42, 1);
  std::vector<SequenceId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(driver.add(prompt, 3));
  driver.step();
  EXPECT_EQ(driver.scheduler.running().size(), 1U) << "the others wait for the first";
  driver.step();
  EXPECT_EQ(driver.scheduler.running().size(), 4U);
  EXPECT_EQ(driver.cache.pool().held_count(), 10 + 4) << "ten shared blocks, and each its own last one";
  driver.run();
  EXPECT_EQ(driver.computed_tokens, 42 + 3 * 1 + 4 * 2);
  for (const auto id : ids) EXPECT_EQ(driver.result(id).output, driver.expected(prompt, 3));
}

TEST(SchedulerTest, DraftsOfOneTaskAreAdmittedTogether) {
  Driver driver({.num_blocks = 256, .block_size = 4, .scheduler = {.max_running = 4, .max_step_tokens = 64}});
  const auto prompt = random_tokens(40, 1), other = random_tokens(40, 2);
  std::vector<SequenceId> drafts, others;
  for (int i = 0; i < 4; ++i) drafts.push_back(driver.add(prompt, 20));
  for (int i = 0; i < 4; ++i) others.push_back(driver.add(other, 20));
  driver.step();
  EXPECT_EQ(driver.scheduler.running().size(), 1U) << "the other slots are the drafts'";
  driver.step();
  for (const auto id : drafts) EXPECT_TRUE(driver.sequence(id).has_run());
  for (const auto id : others) EXPECT_FALSE(driver.sequence(id).has_run());
  driver.run();
  for (const auto id : drafts) EXPECT_EQ(driver.result(id).output, driver.expected(prompt, 20));
  for (const auto id : others) EXPECT_EQ(driver.result(id).output, driver.expected(other, 20));
}

TEST(SchedulerTest, DraftsOfOneTaskFindTheirBlocks) {
  Driver driver({.num_blocks = 22, .block_size = 4, .scheduler = {.max_running = 8, .max_step_tokens = 64}});
  const auto prompt = random_tokens(40, 1), other = random_tokens(40, 2);
  std::vector<SequenceId> drafts;
  for (int i = 0; i < 3; ++i) drafts.push_back(driver.add(prompt, 8));
  const auto junior = driver.add(other, 8);
  driver.step();
  EXPECT_FALSE(driver.sequence(junior).has_run()) << "two of the blocks that are left are the drafts'";
  driver.step();
  for (const auto id : drafts) EXPECT_TRUE(driver.sequence(id).has_run());
  driver.run();
  for (const auto id : drafts) EXPECT_EQ(driver.result(id).output, driver.expected(prompt, 8));
  EXPECT_EQ(driver.result(junior).output, driver.expected(other, 8));
}

TEST(SchedulerTest, WaitingForAPrefixEndsWhenItsProducerGoes) {
  Driver driver({.num_blocks = 512, .block_size = 4, .scheduler = {.max_running = 8, .max_step_tokens = 8}});
  const auto prompt = random_tokens(100, 1);
  const auto producer = driver.add(prompt, 3);
  const auto follower = driver.add(prompt, 3);
  driver.step();
  driver.step();
  EXPECT_FALSE(driver.sequence(follower).has_run());
  driver.cancel(producer);
  driver.step();
  EXPECT_TRUE(driver.sequence(follower).has_run());
  EXPECT_EQ(driver.sequence(follower).cached_tokens(), 16) << "what the producer had computed";
  driver.run();
  EXPECT_EQ(driver.result(follower).output, driver.expected(prompt, 3));
  EXPECT_EQ(driver.scheduler.counters().watchdog_trips, 0U);
}

TEST(SchedulerTest, AnUrgentSequenceDoesNotWaitForALessUrgentProducer) {
  Driver driver({.num_blocks = 512, .block_size = 4, .scheduler = {.max_running = 8, .max_step_tokens = 8}});
  const auto prompt = random_tokens(100, 1);
  driver.add(prompt, 3, 0);
  driver.step();
  const auto urgent = driver.add(prompt, 3, 5);
  driver.step();
  EXPECT_TRUE(driver.sequence(urgent).has_run());
}

TEST(SchedulerTest, TenantsDoNotSeeEachOthersPrefixes) {
  Driver driver({});
  const auto prompt = random_tokens(20, 1);
  driver.add(prompt, 2, 0, "a");
  driver.run();
  const auto other = driver.add(prompt, 2, 0, "b");
  const auto same = driver.add(prompt, 2, 0, "a");
  driver.run();
  EXPECT_EQ(driver.result(other).cached_tokens, 0);
  EXPECT_EQ(driver.result(same).cached_tokens, 19);
}

TEST(SchedulerTest, TenantsDoNotWaitForEachOthersPrefixes) {
  Driver driver({.num_blocks = 128, .scheduler = {.max_running = 8, .max_step_tokens = 128}});
  driver.add(random_tokens(40, 1), 2, 0, "a");
  const auto same = driver.add(random_tokens(40, 1), 2, 0, "a");
  const auto other = driver.add(random_tokens(40, 1), 2, 0, "b");
  driver.step();
  EXPECT_FALSE(driver.sequence(same).has_run());
  EXPECT_TRUE(driver.sequence(other).has_run());
}

TEST(SchedulerTest, AnUrgentPromptIsPrefilledBeforeALongOneThatIsUnderWay) {
  Driver driver({.num_blocks = 512, .block_size = 4, .scheduler = {.max_running = 8, .max_step_tokens = 8}});
  const auto slow = driver.add(random_tokens(200, 1), 3, 0);
  driver.step();
  const auto urgent = driver.add(random_tokens(20, 2), 1, 1);
  for (int i = 0; i < 3; ++i) driver.step();
  EXPECT_FALSE(driver.alive(urgent));
  EXPECT_EQ(driver.sequence(slow).computed(), 8 + 4);
}

// The pool is just too small for both: both finish, with few preemptions.
TEST(SchedulerTest, TwoThatDoNotFitTogetherBothFinish) {
  Driver driver({.num_blocks = 20, .block_size = 4, .scheduler = {.max_running = 8, .max_step_tokens = 16}});
  const auto a = random_tokens(10, 1), b = random_tokens(10, 2);
  const auto first = driver.add(a, 50), second = driver.add(b, 50);
  driver.run(2000);
  EXPECT_EQ(driver.result(first).output, driver.expected(a, 50));
  EXPECT_EQ(driver.result(second).output, driver.expected(b, 50));
  EXPECT_EQ(driver.result(first).preemptions, 0) << "the most senior is never preempted";
  EXPECT_GE(driver.result(second).preemptions, 1);
  EXPECT_LE(driver.result(second).preemptions, 6);
}

TEST(SchedulerTest, ManyInATinyPoolFinishWithBoundedPreemptions) {
  Driver driver({.num_blocks = 24, .block_size = 4, .scheduler = {.max_running = 16, .max_step_tokens = 32}});
  std::vector<SequenceId> ids;
  std::vector<std::vector<TokenId>> prompts;
  for (std::uint64_t i = 0; i < 16; ++i) {
    prompts.push_back(random_tokens(8, i));
    ids.push_back(driver.add(prompts.back(), 60));
  }
  driver.run(5000);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(driver.result(ids[i]).output, driver.expected(prompts[i], 60));
    EXPECT_LE(driver.result(ids[i]).preemptions, 6) << "2^k blocks of growth: log2 of a sequence's 17 blocks, and one";
  }
  EXPECT_EQ(driver.scheduler.counters().watchdog_trips, 0U);
}

// Preempted after each possible number of output tokens: the same output, neither cut nor doubled.
TEST(SchedulerTest, PreemptionAtEveryStepLeavesTheOutputAsItIs) {
  const auto prompt = random_tokens(9, 5);
  for (int when = 1; when <= 20; ++when) {
    Driver driver({.num_blocks = 16, .block_size = 4, .scheduler = {.max_running = 1, .max_step_tokens = 8}});
    const auto id = driver.add(prompt, 18);
    for (int i = 0; i < when; ++i) driver.step();
    const auto urgent = driver.add(random_tokens(30, 6), 2, 10);
    driver.run();
    EXPECT_EQ(driver.result(id).output, driver.expected(prompt, 18)) << "preempted in step " << when;
    if (when < 19) {
      EXPECT_EQ(driver.result(id).preemptions, 1);
      EXPECT_LT(driver.result(urgent).finished_in_step, driver.result(id).finished_in_step);
    }
  }
}

TEST(SchedulerTest, HigherPriorityRunsFirst) {
  Driver driver({.scheduler = {.max_running = 1, .max_step_tokens = 16}});
  const auto low = driver.add(random_tokens(5, 1), 5, 0);
  const auto high = driver.add(random_tokens(5, 2), 5, 3);
  driver.run();
  EXPECT_LT(driver.result(high).finished_in_step, driver.result(low).finished_in_step);
}

TEST(SchedulerTest, AHigherPriorityTakesTheSlotOfALower) {
  Driver driver({.scheduler = {.max_running = 2, .max_step_tokens = 16}});
  const auto p = random_tokens(5, 1), q = random_tokens(5, 2);
  const auto low = driver.add(p, 30, 0), peer = driver.add(q, 30, 0);
  driver.step();
  const auto high = driver.add(random_tokens(5, 3), 3, 1);
  driver.step();
  EXPECT_TRUE(driver.sequence(high).has_run());
  driver.run();
  EXPECT_EQ(driver.result(low).preemptions, 0);
  EXPECT_EQ(driver.result(peer).preemptions, 1) << "the junior one gave way";
  EXPECT_EQ(driver.result(low).output, driver.expected(p, 30));
  EXPECT_EQ(driver.result(peer).output, driver.expected(q, 30));
}

TEST(SchedulerTest, EqualPriorityPreemptsNobody) {
  Driver driver({.scheduler = {.max_running = 1, .max_step_tokens = 16}});
  const auto first = driver.add(random_tokens(5, 1), 10, 0);
  driver.step();
  driver.add(random_tokens(5, 2), 2, 0);
  driver.run();
  EXPECT_EQ(driver.result(first).preemptions, 0);
}

// A steady stream of urgent work can't keep a patient one out for ever.
TEST(SchedulerTest, WaitingRaisesThePriority) {
  Driver driver({.scheduler = {.max_running = 1, .max_step_tokens = 16, .ageing_steps = 10}});
  const auto patient = driver.add(random_tokens(5, 1), 5, 0);
  for (std::uint64_t i = 0; i < 100 && driver.alive(patient); ++i) {
    driver.add(random_tokens(3, 100 + i), 4, 2);
    for (int k = 0; k < 4; ++k) driver.step();
  }
  EXPECT_FALSE(driver.alive(patient)) << "starved";
}

// Submit refuses these; should one get in all the same, it must not stop those behind it.
TEST(SchedulerTest, WhatCanNeverRunIsNamedAndTheOthersGoOn) {
  Driver driver({.num_blocks = 8, .block_size = 4});
  const auto huge = driver.add(random_tokens(100, 1), 5);
  const auto prompt = random_tokens(10, 2);
  const auto next = driver.add(prompt, 5);
  driver.run(50);
  EXPECT_TRUE(driver.result(huge).stuck);
  EXPECT_EQ(driver.result(next).output, driver.expected(prompt, 5));
  EXPECT_EQ(driver.scheduler.counters().watchdog_trips, 1U);
}

TEST(SchedulerTest, GrowingBeyondThePoolIsNamedToo) {
  Driver driver({.num_blocks = 4, .block_size = 4});
  const auto id = driver.add(random_tokens(10, 1), 50);
  driver.run(100);
  EXPECT_TRUE(driver.result(id).stuck);
}

TEST(SchedulerTest, ASequenceThatNeedsTheWholePoolGetsIt) {
  Driver driver({.num_blocks = 8, .block_size = 4, .max_pinned_blocks = 8});
  const auto old = random_tokens(30, 1);
  driver.add(old, 2);
  driver.run();
  driver.cache.pin(1, "", "", old, KvCache::Clock::now() + std::chrono::hours(1));
  EXPECT_EQ(driver.cache.pinned_blocks(), 8);
  const auto prompt = random_tokens(20, 2);
  const auto id = driver.add(prompt, 13);
  driver.run();
  EXPECT_EQ(driver.result(id).output, driver.expected(prompt, 13)) << "pins end rather than stop the work";
  EXPECT_EQ(driver.scheduler.counters().watchdog_trips, 0U);
}

TEST(SchedulerTest, AHitThatNeedsTheWholePoolForgoesTheCopy) {
  Driver driver({.num_blocks = 8, .block_size = 4});
  const auto old = random_tokens(31, 1);
  driver.add(old, 2);
  driver.run();
  auto prompt = old;
  prompt[30] = (prompt[30] + 1) % 64;  // seven blocks match, and half of the eighth, which would have to be held besides
  const auto id = driver.add(prompt, 2);
  driver.run();
  EXPECT_EQ(driver.result(id).output, driver.expected(prompt, 2));
  EXPECT_EQ(driver.scheduler.counters().watchdog_trips, 0U);
}

TEST(SchedulerTest, CancelledWorkLeavesItsPlaceAtOnce) {
  for (int when = 0; when <= 8; ++when) {
    Driver driver({.num_blocks = 32, .block_size = 4, .scheduler = {.max_running = 2, .max_step_tokens = 8}});
    const auto keeps = random_tokens(12, 2);
    const auto gone = driver.add(random_tokens(30, 1), 10);
    const auto stays = driver.add(keeps, 5);
    for (int i = 0; i < when; ++i) driver.step();
    driver.cancel(gone);
    driver.run();
    EXPECT_EQ(driver.result(stays).output, driver.expected(keeps, 5));
    EXPECT_EQ(driver.cache.pool().held_count(), 0);
  }
}

TEST(SchedulerTest, ForgottenWorkIsNotFoundAgain) {
  Driver driver({.scheduler = {.max_running = 4, .max_step_tokens = 64}});
  const auto prompt = random_tokens(22, 1);
  Sequence sequence({.id = 1000, .prompt = prompt, .max_total_tokens = 30, .tenant = {}});
  driver.scheduler.add(sequence);
  (void)driver.scheduler.plan();
  driver.scheduler.commit();
  driver.scheduler.remove(sequence, Scheduler::Computed::forget);
  EXPECT_EQ(driver.cache.pool().free_count(), driver.cache.pool().total());
  EXPECT_EQ(driver.cache.prefixes().size(), 0);
}

TEST(SchedulerTest, MoreSequencesThanTheBudgetHasTokensRaiseTheBudget) {
  Driver driver({.num_blocks = 64, .scheduler = {.max_running = 12, .max_step_tokens = 4}});
  std::vector<SequenceId> ids;
  for (std::uint64_t i = 0; i < 12; ++i) ids.push_back(driver.add(random_tokens(3, i), 8));
  driver.run();
  for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(driver.result(ids[i]).output, driver.expected(random_tokens(3, i), 8));
}

}  // namespace
}  // namespace fixpoint::engine
