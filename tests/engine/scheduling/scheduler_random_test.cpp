#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "tests/engine/scheduling/driver.h"

namespace fixpoint::engine {
namespace {

using testing::Driver;
using testing::joined;
using testing::random_tokens;

/// Random arrivals, cancels, pins and evictions on pools of random size. The model is the judge: its logits are a hash of
/// everything attended, so each sequence's output is compared with what the prompt alone implies.
class RandomMixTest : public ::testing::TestWithParam<unsigned> {
 protected:
  struct Submitted {
    std::vector<TokenId> prompt;
    int max_tokens = 0;
  };

  static Driver::Options options(std::mt19937& random) {
    const int block_size = 1 + static_cast<int>(random() % 6);
    return {.num_blocks = 60 / block_size + static_cast<int>(random() % 30) + 1,
            .block_size = block_size,
            .max_pinned_blocks = static_cast<int>(random() % 10),
            .scheduler = {.max_running = 1 + static_cast<int>(random() % 8),
                          .max_step_tokens = 1 + static_cast<int>(random() % 24),
                          .ageing_steps = 1 + static_cast<int>(random() % 20)}};
  }

  /// A prompt that shares a random part with an earlier prompt or with an earlier output.
  std::vector<TokenId> prompt(std::mt19937& random) {
    const int fresh = 1 + static_cast<int>(random() % 20);
    if (texts_.empty() || random() % 4 == 0) return random_tokens(fresh, random());
    const auto& text = texts_[random() % texts_.size()];
    const auto keep = std::min<std::size_t>(text.size(), random() % (text.size() + 1));
    return joined({text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(keep, 30))},
                  random_tokens(1 + fresh / 4, random() % 5));
  }

  void submit(Driver& driver, std::mt19937& random) {
    Submitted submitted{prompt(random), 1 + static_cast<int>(random() % 20)};
    const int capacity = driver.cache.pool().total() * driver.cache.block_size();
    if (static_cast<int>(submitted.prompt.size()) + submitted.max_tokens - 1 > capacity) return;
    texts_.push_back(joined(submitted.prompt, driver.expected(submitted.prompt, submitted.max_tokens)));
    const auto id = driver.add(submitted.prompt, submitted.max_tokens, static_cast<int>(random() % 3));
    submitted_.emplace(id, std::move(submitted));
  }

  void act(Driver& driver, std::mt19937& random) {
    switch (random() % 12) {
      case 0:
      case 1:
      case 2:
        submit(driver, random);
        break;
      case 3:
        if (!submitted_.empty() && random() % 2 == 0) {
          auto victim = std::next(submitted_.begin(), static_cast<std::ptrdiff_t>(random() % submitted_.size()));
          if (driver.alive(victim->first)) {
            driver.cancel(victim->first);
            submitted_.erase(victim);
          }
        }
        break;
      case 4:
        if (!texts_.empty()) {
          driver.cache.pin(1 + random() % 4, "", random() % 2 == 0 ? "s" : "", texts_[random() % texts_.size()],
                           KvCache::Clock::time_point::max());
        }
        break;
      case 5:
        driver.cache.unpin(1 + random() % 4);
        break;
      default:
        driver.step();
    }
  }

  /// Drafts that are right for a while, empty, too long or nonsense.
  static std::vector<TokenId> draft(const Driver& driver, const Sequence& sequence, std::mt19937& random) {
    const int length = static_cast<int>(random() % 14);
    if (random() % 4 == 0) return random_tokens(length * 5, random());
    std::vector<TokenId> tokens = driver.expected({sequence.tokens().begin(), sequence.tokens().end()}, length);
    if (!tokens.empty() && random() % 4 != 0) tokens[random() % tokens.size()] = static_cast<TokenId>(random() % 64);
    return tokens;
  }

  void expect_what_prompts_imply_and_no_leaks(Driver& driver) const {
    for (const auto& [id, submitted] : submitted_) {
      EXPECT_EQ(driver.result(id).output, driver.expected(submitted.prompt, submitted.max_tokens)) << "sequence " << id;
      EXPECT_FALSE(driver.result(id).stuck);
      EXPECT_LE(driver.result(id).preemptions, 200);
    }
    EXPECT_EQ(driver.scheduler.counters().watchdog_trips, 0U);
    while (driver.cache.drop_oldest_pin()) {
    }
    EXPECT_EQ(driver.cache.pool().held_count(), 0);
    while (driver.cache.prefixes().evict_oldest()) {
    }
    EXPECT_EQ(driver.cache.pool().free_count(), driver.cache.pool().total());
  }

  std::vector<std::vector<TokenId>> texts_;
  std::map<SequenceId, Submitted> submitted_;
};

TEST_P(RandomMixTest, EveryOutputIsWhatItsPromptImpliesAndNothingLeaks) {
  std::mt19937 random(GetParam());
  Driver driver(options(random));
  for (int i = 0; i < 400; ++i) ASSERT_NO_THROW(act(driver, random)) << "action " << i;
  ASSERT_NO_THROW(driver.run(20000));
  expect_what_prompts_imply_and_no_leaks(driver);
}

TEST_P(RandomMixTest, DraftsOfAnyKindChangeNoTokenLeakNothingAndPreemptNobody) {
  std::mt19937 random(GetParam() + 1'000);
  Driver driver(options(random));
  std::mt19937 drafts(GetParam());
  driver.draft = [&](const Sequence& sequence) { return draft(driver, sequence, drafts); };
  for (int i = 0; i < 400; ++i) ASSERT_NO_THROW(act(driver, random)) << "action " << i;
  ASSERT_NO_THROW(driver.run(20000));
  expect_what_prompts_imply_and_no_leaks(driver);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomMixTest, ::testing::Range(0U, 200U));

}  // namespace
}  // namespace fixpoint::engine
