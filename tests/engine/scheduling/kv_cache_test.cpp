#include "engine/kv_cache.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace fixpoint::engine {
namespace {

using namespace std::chrono_literals;

class PinTest : public ::testing::Test {
 protected:
  static constexpr KvCache::Clock::time_point start{};

  /// Leaves `n` whole blocks in the cache, holding nothing.
  std::vector<TokenId> cached(int n, TokenId from, std::string_view tenant = "") {
    std::vector<TokenId> tokens(static_cast<std::size_t>(4 * n));
    std::iota(tokens.begin(), tokens.end(), from);
    std::vector<BlockRef> blocks;
    EXPECT_TRUE(cache_.allocate(n, blocks));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto parent = i == 0 ? std::nullopt : std::optional(blocks[i - 1].id());
      blocks[i] = cache_.prefixes().insert(tenant, parent, std::span(tokens).subspan(4 * i, 4), std::move(blocks[i]));
    }
    release_tail_first(blocks);
    return tokens;
  }
  int matched(const std::vector<TokenId>& tokens) { return cache_.prefixes().match("", tokens).tokens(4); }

  KvCache cache_{10, 4, 5};
};

TEST_F(PinTest, PinnedBlocksAreNotEvicted) {
  const auto tokens = cached(3, 0);
  cache_.pin(1, "", "", tokens, start + 1s);
  EXPECT_EQ(cache_.pinned_blocks(), 3);
  std::vector<BlockRef> all;
  EXPECT_FALSE(cache_.allocate(8, all));
  EXPECT_TRUE(cache_.allocate(7, all));
  EXPECT_EQ(matched(tokens), 12);
}

TEST_F(PinTest, PinsEndByIdAndByTime) {
  const auto a = cached(2, 0), b = cached(2, 100);
  cache_.pin(1, "", "", a, start + 10s);
  cache_.pin(2, "", "", b, start + 5s);
  EXPECT_EQ(cache_.next_pin_expiry(), start + 5s);
  cache_.expire_pins(start + 5s);
  EXPECT_EQ(cache_.pinned_blocks(), 2);
  cache_.unpin(1);
  EXPECT_EQ(cache_.pinned_blocks(), 0);
  EXPECT_EQ(cache_.available(), 10);
  cache_.unpin(1);
  cache_.unpin(77);
}

TEST_F(PinTest, SharedBlocksCountOnce) {
  const auto tokens = cached(3, 0);
  cache_.pin(1, "", "", tokens, start + 1s);
  cache_.pin(2, "", "", std::span(tokens).first(8), start + 1s);
  EXPECT_EQ(cache_.pinned_blocks(), 3);
  cache_.unpin(1);
  EXPECT_EQ(cache_.pinned_blocks(), 2);
}

TEST_F(PinTest, ANewerPinOfTheSessionReplacesTheOlder) {
  const auto a = cached(2, 0), b = cached(2, 100);
  cache_.pin(0, "", "session", a, start + 1s);
  cache_.pin(0, "", "session", b, start + 1s);
  EXPECT_EQ(cache_.num_pins(), 1U);
  cache_.pin(0, "", "other", a, start + 1s);
  EXPECT_EQ(cache_.num_pins(), 2U);
}

TEST_F(PinTest, ASessionsPinEndsWithIt) {
  const auto a = cached(1, 0), b = cached(1, 100);
  cache_.pin(0, "", "session", a, start + 1s);
  cache_.pin(0, "", "", b, start + 1s);
  cache_.unpin("tenant", "session");
  cache_.unpin("", "other");
  cache_.unpin("", "");
  EXPECT_EQ(cache_.num_pins(), 2U) << "another tenant's, another session's, and one that is no session's";
  cache_.unpin("", "session");
  EXPECT_EQ(cache_.num_pins(), 1U);
  EXPECT_EQ(cache_.pinned_blocks(), 1);
}

TEST_F(PinTest, BeyondTheLimitTheOldestEnds) {
  const auto a = cached(3, 0), b = cached(3, 100);
  cache_.pin(1, "", "", a, start + 1s);
  cache_.pin(2, "", "", b, start + 1s);
  EXPECT_EQ(cache_.num_pins(), 1U);
  EXPECT_EQ(cache_.pinned_blocks(), 3);
  cache_.unpin(2);
  EXPECT_EQ(cache_.num_pins(), 0U);
}

TEST_F(PinTest, PinningWhatIsNotCachedHoldsNothing) {
  cache_.pin(1, "", "", std::vector<TokenId>{1, 2, 3, 4}, start + 1s);
  EXPECT_EQ(cache_.num_pins(), 0U);
  const auto tokens = cached(1, 0, "a");
  cache_.pin(2, "b", "", tokens, start + 1s);
  EXPECT_EQ(cache_.num_pins(), 0U);
}

TEST(KvCacheTest, TheBudgetDecidesTheNumberOfBlocks) {
  EXPECT_EQ(blocks_within(1000, 100, 1000), 10);
  EXPECT_EQ(blocks_within(1099, 100, 1000), 10);
  EXPECT_EQ(blocks_within(1000, 100, 4), 4);
  EXPECT_EQ(blocks_within(99, 100, 1000), std::nullopt);
  EXPECT_EQ(blocks_within(1000, 0, 1000), std::nullopt);
  EXPECT_EQ(blocks_within(1000, 100, 0), std::nullopt);
}

TEST(KvCacheTest, AllocationIsAllOrNothing) {
  KvCache cache(4, 4, 0);
  std::vector<BlockRef> blocks;
  EXPECT_FALSE(cache.allocate(5, blocks));
  EXPECT_TRUE(blocks.empty());
  EXPECT_TRUE(cache.allocate(4, blocks));
  EXPECT_FALSE(cache.allocate(1, blocks));
  EXPECT_EQ(blocks.size(), 4U);
}

}  // namespace
}  // namespace fixpoint::engine
