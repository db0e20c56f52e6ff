#include "kernels/cpu/attention_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels::cpu {
namespace {

/// Random sequences in a tree of shared blocks, as flat arrays.
struct RandomBatch {
  std::int32_t block_size;
  std::vector<std::vector<std::int32_t>> blocks;
  std::vector<std::int32_t> q_indptr{0}, block_indptr{0}, block_ids, last_block_len, positions;

  RandomBatch(Random& random, std::int32_t size) : block_size(size) {
    std::int32_t next = 0;
    const auto count = random.between(1, 40);
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<std::int32_t> own;
      if (i > 0 && random.between(0, 3) > 0) {
        const auto& parent = blocks[static_cast<std::size_t>(random.between(0, i - 1))];
        own.assign(parent.begin(), parent.begin() + random.between(0, static_cast<std::int64_t>(parent.size())));
      }
      for (auto more = random.between(own.empty() ? 1 : 0, 60); more > 0; --more) own.push_back(next++);
      const auto len = static_cast<std::int32_t>(random.between(1, size));
      const std::int32_t context = (static_cast<std::int32_t>(own.size()) - 1) * size + len;
      const auto tokens = static_cast<std::int32_t>(random.between(0, 3) == 0 ? random.between(0, std::min(context, 80)) : 1);
      for (std::int32_t p = context - tokens; p < context; ++p) positions.push_back(p);
      q_indptr.push_back(static_cast<std::int32_t>(positions.size()));
      block_ids.insert(block_ids.end(), own.begin(), own.end());
      block_indptr.push_back(static_cast<std::int32_t>(block_ids.size()));
      last_block_len.push_back(len);
      blocks.push_back(std::move(own));
    }
  }
  [[nodiscard]] PagedBatch batch() const { return {block_size, q_indptr, block_indptr, block_ids, last_block_len, positions}; }
};

/// Splits, from the first, of which both have all blocks, and the same ones.
std::int32_t common_splits(const std::vector<std::int32_t>& a, const std::vector<std::int32_t>& b, const KvLayout& layout) {
  const auto equal = std::ranges::mismatch(a, b).in1 - a.begin();
  std::int32_t splits = 0;
  while (((splits + 1) * kSplitSubTiles - 1) / layout.sub_tiles + 1 <= equal) ++splits;
  return splits;
}

class AttentionPlanTest : public ::testing::TestWithParam<std::int32_t> {
 protected:
  KvLayout layout_{KvShape{1, GetParam(), 1, 64, KvType::f16}};
  AttentionPlan plan_;
};

TEST_P(AttentionPlanTest, NeighboursShareWhatThePlanSaysAndEverySharedSplitIsReadOnce) {
  Random random(5);
  for (int round = 0; round < 100; ++round) {
    const RandomBatch made(random, GetParam());
    plan_.make(made.batch(), layout_, 2, 64);
    const auto& members = plan_.members();
    std::set<std::int32_t> seen;
    std::map<std::int32_t, std::int32_t> reads;         // by level: runs of neighbours
    std::map<std::int32_t, std::set<std::vector<std::int32_t>>> distinct;  // prefixes, brute force
    for (std::size_t m = 0; m + 1 < members.size(); ++m) {
      const auto& blocks = made.blocks[static_cast<std::size_t>(members[m].seq)];
      EXPECT_TRUE(seen.insert(members[m].seq).second);
      if (m > 0) {
        const auto& before = made.blocks[static_cast<std::size_t>(members[m - 1].seq)];
        EXPECT_EQ(members[m].shared_splits, common_splits(before, blocks, layout_)) << "round " << round;
      }
      for (std::int32_t level = 0; level < common_splits(blocks, blocks, layout_); ++level) {
        if (m == 0 || members[m].shared_splits <= level) ++reads[level];
        const auto end = ((level + 1) * kSplitSubTiles - 1) / layout_.sub_tiles + 1;
        distinct[level].insert({blocks.begin(), blocks.begin() + end});
      }
    }
    for (const auto& [level, prefixes] : distinct) {
      EXPECT_EQ(reads[level], static_cast<std::int32_t>(prefixes.size())) << "round " << round << " level " << level;
    }
    for (std::int32_t s = 0; s < made.batch().num_seqs(); ++s) {
      const auto i = static_cast<std::size_t>(s);
      EXPECT_EQ(seen.contains(s), made.q_indptr[i + 1] > made.q_indptr[i]);
    }
  }
}

TEST_P(AttentionPlanTest, PiecesCoverEveryRowOnceAndStayWithinTheirPrefix) {
  Random random(6);
  for (int round = 0; round < 100; ++round) {
    const RandomBatch made(random, GetParam());
    const auto group = static_cast<std::int32_t>(random.between(1, 8));
    const auto most = static_cast<std::int32_t>(8 * random.between(1, 8));
    plan_.make(made.batch(), layout_, group, most);
    const auto& members = plan_.members();
    ASSERT_EQ(members.back().first_row, made.batch().num_tokens() * group);
    std::vector<int> times(static_cast<std::size_t>(members.back().first_row), 0);
    for (const auto& piece : plan_.pieces()) {
      EXPECT_GE(piece.rows, 1);
      EXPECT_LE(piece.rows, most);
      for (std::int32_t r = 0; r < piece.rows; ++r) ++times[static_cast<std::size_t>(piece.first_row + r)];
      auto m = static_cast<std::size_t>(piece.first_member);
      EXPECT_LE(members[m].first_row, piece.first_row);
      EXPECT_GT(members[m + 1].first_row, piece.first_row);
      for (++m; members[m].first_row < piece.first_row + piece.rows; ++m) EXPECT_GT(members[m].shared_splits, 0);
    }
    EXPECT_TRUE(std::ranges::all_of(times, [](int n) { return n == 1; })) << "round " << round;
    EXPECT_TRUE(std::ranges::is_sorted(plan_.pieces(), std::greater<>(), &AttentionPlan::Piece::cost));
  }
}

INSTANTIATE_TEST_SUITE_P(BlockSizes, AttentionPlanTest, ::testing::Values(1, 8, 16, 24, 40, 256, 400));

}  // namespace
}  // namespace fixpoint::kernels::cpu
