#include "engine/block_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace fixpoint::engine {
namespace {

TEST(BlockPoolTest, EveryBlockIsGivenOnceAndThenNone) {
  BlockPool pool(3);
  std::vector<BlockRef> refs;
  for (int i = 0; i < 3; ++i) refs.push_back(*pool.allocate());
  EXPECT_FALSE(pool.allocate());
  std::vector<BlockId> ids;
  for (const auto& ref : refs) ids.push_back(ref.id());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, (std::vector<BlockId>{0, 1, 2}));
  EXPECT_EQ(pool.held_count(), 3);
}

TEST(BlockPoolTest, TheLastHoldGivesTheBlockBack) {
  BlockPool pool(1);
  BlockRef first = *pool.allocate();
  BlockRef second = first;
  first.reset();
  EXPECT_EQ(pool.free_count(), 0);
  second = BlockRef();
  EXPECT_EQ(pool.free_count(), 1);
  pool.check();
}

TEST(BlockPoolTest, TheBlockThatBecameFreeLastIsGivenFirst) {
  BlockPool pool(8);
  const BlockId id = pool.allocate()->id();
  EXPECT_EQ(pool.allocate()->id(), id);
  auto a = pool.allocate(), b = pool.allocate();
  const BlockId last = b->id();
  a.reset();
  b.reset();
  EXPECT_EQ(pool.allocate()->id(), last);
}

TEST(BlockPoolTest, AssigningAHoldToItselfKeepsIt) {
  BlockPool pool(1);
  BlockRef ref = *pool.allocate();
  ref = *&ref;
  EXPECT_EQ(pool.refs(ref.id()), 1);
  BlockRef moved = std::move(ref);
  EXPECT_FALSE(ref);  // NOLINT: the moved-from state is what is tested
  EXPECT_EQ(pool.refs(moved.id()), 1);
}

TEST(BlockPoolTest, IndexedBlocksAreCachedWhenNobodyHoldsThem) {
  BlockPool pool(2);
  BlockRef ref = *pool.allocate();
  const BlockId id = ref.id();
  pool.set_indexed(id, true);
  ref.reset();
  EXPECT_EQ(pool.cached_count(), 1);
  EXPECT_EQ(pool.oldest_cached(), id);
  ref = pool.share(id);
  EXPECT_EQ(pool.cached_count(), 0);
  ref.reset();
  pool.set_indexed(id, false);
  EXPECT_EQ(pool.free_count(), 2);
  pool.check();
}

TEST(BlockPoolTest, CachedBlocksAreKeptInTheOrderOfTheirLastRelease) {
  BlockPool pool(3);
  std::vector<BlockRef> refs;
  for (int i = 0; i < 3; ++i) {
    refs.push_back(*pool.allocate());
    pool.set_indexed(refs.back().id(), true);
  }
  const BlockId a = refs[0].id(), b = refs[1].id(), c = refs[2].id();
  refs.clear();
  pool.share(a).reset();  // used again: now the youngest
  EXPECT_EQ(pool.oldest_cached(), b);
  pool.set_indexed(b, false);
  EXPECT_EQ(pool.oldest_cached(), c);
  pool.set_indexed(c, false);
  EXPECT_EQ(pool.oldest_cached(), a);
}

TEST(BlockPoolTest, SharingAFreeBlockIsAnError) {
  BlockPool pool(1);
  EXPECT_THROW((void)pool.share(0), std::logic_error);
  EXPECT_THROW(pool.set_indexed(0, true), std::logic_error);
}

/// The same operations on plain counts and a deque.
class PlainPool {
 public:
  explicit PlainPool(int n) : refs_(static_cast<std::size_t>(n)), indexed_(static_cast<std::size_t>(n)) {}
  void hold(BlockId id) {
    if (refs_[at(id)]++ == 0) std::erase(cached_, id);
  }
  void release(BlockId id) {
    if (--refs_[at(id)] == 0 && indexed_[at(id)]) cached_.push_back(id);
  }
  void set_indexed(BlockId id, bool indexed) {
    if (!indexed) std::erase(cached_, id);
    indexed_[at(id)] = indexed;
  }
  void expect_same(const BlockPool& pool) const {
    const auto held = static_cast<int>(std::count_if(refs_.begin(), refs_.end(), [](int n) { return n > 0; }));
    ASSERT_EQ(pool.held_count(), held);
    ASSERT_EQ(pool.cached_count(), static_cast<int>(cached_.size()));
    ASSERT_EQ(pool.free_count(), static_cast<int>(refs_.size()) - held - static_cast<int>(cached_.size()));
    ASSERT_EQ(pool.oldest_cached(), cached_.empty() ? std::nullopt : std::optional(cached_.front()));
  }
  [[nodiscard]] bool shareable(BlockId id) const { return refs_[at(id)] > 0 || indexed_[at(id)]; }
  [[nodiscard]] bool indexable(BlockId id) const { return refs_[at(id)] > 0 || indexed_[at(id)]; }

 private:
  static std::size_t at(BlockId id) { return static_cast<std::size_t>(id); }
  std::vector<int> refs_;
  std::vector<bool> indexed_;
  std::deque<BlockId> cached_;
};

TEST(BlockPoolTest, RandomOperationsAgreeWithPlainCounts) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    constexpr int blocks = 12;
    BlockPool pool(blocks);
    PlainPool plain(blocks);
    std::vector<BlockRef> refs;
    for (int step = 0; step < 2000; ++step) {
      const auto id = static_cast<BlockId>(random() % blocks);
      switch (random() % 4) {
        case 0:
          if (auto ref = pool.allocate()) {
            plain.hold(ref->id());
            refs.push_back(std::move(*ref));
          }
          break;
        case 1:
          if (plain.shareable(id) && refs.size() < 40) {
            refs.push_back(pool.share(id));
            plain.hold(id);
          }
          break;
        case 2:
          if (!refs.empty()) {
            std::swap(refs[random() % refs.size()], refs.back());
            plain.release(refs.back().id());
            refs.pop_back();
          }
          break;
        default:
          if (const bool indexed = random() % 2 == 0; plain.indexable(id)) {
            pool.set_indexed(id, indexed);
            plain.set_indexed(id, indexed);
          }
      }
      ASSERT_TRUE(pool.balanced());
      ASSERT_NO_FATAL_FAILURE(plain.expect_same(pool));
      if (step % 50 == 0) pool.check();
    }
    refs.clear();
    pool.check();
  }
}

}  // namespace
}  // namespace fixpoint::engine
