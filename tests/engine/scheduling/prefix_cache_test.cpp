#include "engine/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "engine/kv_cache.h"

namespace fixpoint::engine {
namespace {

using Tokens = std::vector<TokenId>;

Tokens counting(int n, int from = 0) {
  Tokens tokens(static_cast<std::size_t>(n));
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

/// Computes what is not cached of `tokens`, as a sequence does, and puts it into the index; gives the blocks it holds.
std::vector<BlockRef> compute(KvCache& cache, std::string_view tenant, std::span<const TokenId> tokens) {
  const auto size = static_cast<std::size_t>(cache.block_size());
  PrefixMatch match = cache.prefixes().match(tenant, tokens);
  match.drop_partial();
  const std::size_t known = match.blocks.size();
  std::vector<BlockRef> blocks = std::move(match.blocks);
  if (!cache.allocate(cache.blocks_for(static_cast<std::int64_t>(tokens.size())) - static_cast<int>(known), blocks)) {
    release_tail_first(blocks);
    return {};
  }
  for (std::size_t i = known; i < blocks.size(); ++i) {
    const auto part = tokens.subspan(i * size, std::min(size, tokens.size() - i * size));
    const auto parent = i == 0 ? std::nullopt : std::optional(blocks[i - 1].id());
    blocks[i] = cache.prefixes().insert(tenant, parent, part, std::move(blocks[i]));
  }
  return blocks;
}

int matched(KvCache& cache, std::string_view tenant, const Tokens& tokens) {
  return cache.prefixes().match(tenant, tokens).tokens(cache.block_size());
}

TEST(PrefixCacheTest, FindsWhatWasComputedAndNothingElse) {
  KvCache cache(16, 4, 0);
  auto blocks = compute(cache, "", counting(10));
  EXPECT_EQ(matched(cache, "", counting(10)), 10);
  EXPECT_EQ(matched(cache, "", counting(20)), 10);
  EXPECT_EQ(matched(cache, "", counting(10, 1)), 0);
  release_tail_first(blocks);
  EXPECT_EQ(matched(cache, "", counting(10)), 10);
  cache.prefixes().check();
}

// Prefix lengths around the block size are where tables go wrong.
TEST(PrefixCacheTest, LengthsAroundBlockBoundariesMatchExactly) {
  for (int length = 1; length <= 13; ++length) {
    KvCache cache(16, 4, 0);
    auto blocks = compute(cache, "", counting(length));
    for (int asked = 1; asked <= 14; ++asked) {
      PrefixMatch match = cache.prefixes().match("", counting(asked));
      const int common = std::min(asked, length);
      EXPECT_EQ(match.tokens(4), common) << "length " << length << " asked " << asked;
      EXPECT_EQ(match.blocks.size(), static_cast<std::size_t>(common / 4));
      EXPECT_EQ(match.partial_tokens, common % 4);
      EXPECT_EQ(static_cast<bool>(match.partial), common % 4 != 0);
    }
    release_tail_first(blocks);
  }
}

TEST(PrefixCacheTest, DivergenceInsideABlockIsFoundToTheToken) {
  KvCache cache(16, 8, 0);
  auto blocks = compute(cache, "", counting(16));
  Tokens other = counting(16);
  other[13] = 99;
  PrefixMatch match = cache.prefixes().match("", other);
  EXPECT_EQ(match.blocks.size(), 1U);
  EXPECT_EQ(match.partial.id(), blocks[1].id());
  EXPECT_EQ(match.partial_tokens, 5);
}

TEST(PrefixCacheTest, TheLongestOfManySiblingsIsFound) {
  KvCache cache(64, 8, 0);
  std::vector<std::vector<BlockRef>> held;
  for (int i = 0; i < 8; ++i) {
    Tokens tokens(8, 5);
    for (int j = i; j < 8; ++j) tokens[static_cast<std::size_t>(j)] = 10 + i;
    held.push_back(compute(cache, "", tokens));
  }
  for (int i = 1; i < 8; ++i) {
    Tokens tokens(8, 5);
    for (int j = i; j < 8; ++j) tokens[static_cast<std::size_t>(j)] = 1000;
    EXPECT_EQ(matched(cache, "", tokens), i);
  }
  cache.prefixes().check();
}

TEST(PrefixCacheTest, TenantsNeverShare) {
  KvCache cache(16, 4, 0);
  auto a = compute(cache, "a", counting(8));
  EXPECT_EQ(matched(cache, "b", counting(8)), 0);
  auto b = compute(cache, "b", counting(8));
  EXPECT_NE(a[0].id(), b[0].id());
  EXPECT_EQ(matched(cache, "a", counting(8)), 8);
  EXPECT_EQ(matched(cache, "b", counting(8)), 8);
  EXPECT_EQ(matched(cache, "", counting(8)), 0);
}

TEST(PrefixCacheTest, ATenantLeavesNothingWhenItsBlocksAreGone) {
  KvCache cache(2, 4, 0);
  for (int i = 0; i < 10; ++i) {
    auto blocks = compute(cache, "tenant " + std::to_string(i), counting(8));
    release_tail_first(blocks);
  }
  EXPECT_LE(cache.prefixes().num_tenants(), 2U);
  while (cache.prefixes().evict_oldest()) {
  }
  EXPECT_EQ(cache.prefixes().num_tenants(), 0U);
  cache.prefixes().check();
  cache.pool().check();
}

// Polynomial hashes collide on (+31, -1) of neighbours; nothing here is hashed, and the vector stays as a test.
TEST(PrefixCacheTest, NeighboursThatCollideInPolynomialHashesAreDifferent) {
  KvCache cache(16, 4, 0);
  auto blocks = compute(cache, "", Tokens{100, 200, 300, 400});
  EXPECT_EQ(matched(cache, "", Tokens{101, 169, 300, 400}), 0);
  EXPECT_EQ(matched(cache, "", Tokens{100, 201, 269, 400}), 1);
}

TEST(PrefixCacheTest, TheSameBlockComputedTwiceIsKeptOnce) {
  KvCache cache(16, 4, 0);
  auto first = compute(cache, "", counting(4));
  std::vector<BlockRef> own;
  ASSERT_TRUE(cache.allocate(1, own));
  const BlockId duplicate = own[0].id();
  const BlockRef kept = cache.prefixes().insert("", std::nullopt, counting(4), std::move(own[0]));
  EXPECT_EQ(kept.id(), first[0].id());
  EXPECT_EQ(cache.pool().refs(duplicate), 0);
  EXPECT_EQ(cache.prefixes().size(), 1);
}

TEST(PrefixCacheTest, APartialBlockGrowsInPlace) {
  KvCache cache(16, 4, 0);
  std::vector<BlockRef> own;
  ASSERT_TRUE(cache.allocate(1, own));
  own[0] = cache.prefixes().insert("", std::nullopt, counting(2), std::move(own[0]));
  EXPECT_EQ(matched(cache, "", counting(4)), 2);
  own[0] = cache.prefixes().insert("", std::nullopt, counting(3), std::move(own[0]));
  EXPECT_EQ(matched(cache, "", counting(4)), 3);
  own[0] = cache.prefixes().insert("", std::nullopt, counting(4), std::move(own[0]));
  EXPECT_EQ(matched(cache, "", counting(4)), 4);
  EXPECT_EQ(cache.prefixes().size(), 1);
  cache.prefixes().check();
}

TEST(PrefixCacheTest, EvictionTakesTheOldestLeafAndSparesWhatIsHeld) {
  KvCache cache(4, 4, 0);
  auto held = compute(cache, "", counting(8));
  auto released = compute(cache, "", counting(8, 100));
  release_tail_first(released);
  EXPECT_EQ(cache.available(), 2);
  std::vector<BlockRef> more;
  ASSERT_TRUE(cache.allocate(1, more));
  EXPECT_EQ(matched(cache, "", counting(8, 100)), 4) << "the leaf went first";
  ASSERT_TRUE(cache.allocate(1, more));
  EXPECT_EQ(matched(cache, "", counting(8, 100)), 0);
  EXPECT_EQ(matched(cache, "", counting(8)), 8);
  EXPECT_FALSE(cache.allocate(1, more));
  EXPECT_EQ(cache.prefixes().evictions(), 2U);
}

TEST(PrefixCacheTest, ForgottenBlocksAreNotFound) {
  KvCache cache(16, 4, 0);
  auto blocks = compute(cache, "", counting(8));
  EXPECT_FALSE(cache.prefixes().forget(blocks[0].id())) << "it has a child";
  EXPECT_TRUE(cache.prefixes().forget(blocks[1].id()));
  EXPECT_EQ(matched(cache, "", counting(8)), 4);
  release_tail_first(blocks);
  EXPECT_EQ(cache.pool().free_count(), 15);
}

/// Random sequences that come, share, grow and go, against a list of what was written into each block.
class RandomCacheTest : public ::testing::TestWithParam<unsigned> {
 protected:
  static constexpr int block_size = 3;
  struct Holder {
    std::string tenant;
    std::vector<BlockRef> blocks;
  };

  /// What each block holds from the start of its sequence, by what was written; only indexed blocks count.
  [[nodiscard]] int longest(std::string_view tenant, const Tokens& tokens) const {
    int best = 0;
    for (const auto& [id, written] : written_) {
      if (!cache_.pool().indexed(id) || written.first != tenant) continue;
      const Tokens& path = written.second;
      const auto n = std::min(path.size(), tokens.size());
      best = std::max(best, static_cast<int>(std::mismatch(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(n), tokens.begin()).first - path.begin()));
    }
    return best;
  }

  void come(std::mt19937& random) {
    Holder holder{random() % 4 == 0 ? "b" : "a", {}};
    Tokens tokens(1 + random() % 14);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 2);
    PrefixMatch match = cache_.prefixes().match(holder.tenant, tokens);
    ASSERT_EQ(match.tokens(block_size), longest(holder.tenant, tokens));
    for (std::size_t i = 0; i < match.blocks.size(); ++i) {
      const Tokens path(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>((i + 1) * block_size));
      ASSERT_EQ(written_[match.blocks[i].id()].second, path) << "the block holds something else";
    }
    match.release();
    holder.blocks = compute(cache_, holder.tenant, tokens);
    for (std::size_t i = 0; i < holder.blocks.size(); ++i) {
      const auto end = std::min(tokens.size(), (i + 1) * block_size);
      auto& written = written_[holder.blocks[i].id()];
      Tokens path(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(end));
      // A shorter statement about an indexed block does not replace a longer one.
      const bool longer_known = cache_.pool().refs(holder.blocks[i].id()) > 1 && written.second.size() > path.size();
      if (!longer_known) written = {holder.tenant, path};
    }
    if (!holder.blocks.empty()) holders_.push_back(std::move(holder));
  }

  KvCache cache_{14, block_size, 0};
  std::map<BlockId, std::pair<std::string, Tokens>> written_;
  std::vector<Holder> holders_;
};

TEST_P(RandomCacheTest, MatchesAreTheLongestThereAreAndHoldWhatTheySay) {
  std::mt19937 random(GetParam());
  for (int step = 0; step < 600; ++step) {
    const auto action = random() % 8;
    if (action < 4) {
      ASSERT_NO_FATAL_FAILURE(come(random));
    } else if (action < 7 && !holders_.empty()) {
      std::swap(holders_[random() % holders_.size()], holders_.back());
      release_tail_first(holders_.back().blocks);
      holders_.pop_back();
    } else {
      cache_.prefixes().evict_oldest();
    }
    ASSERT_NO_THROW(cache_.prefixes().check());
    ASSERT_NO_THROW(cache_.pool().check());
  }
  for (Holder& holder : holders_) release_tail_first(holder.blocks);
  while (cache_.prefixes().evict_oldest()) {
  }
  EXPECT_EQ(cache_.pool().free_count(), cache_.pool().total());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomCacheTest, ::testing::Range(0U, 20U));

}  // namespace
}  // namespace fixpoint::engine
