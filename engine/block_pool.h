#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace fixpoint::engine {

using BlockId = std::int32_t;

class BlockPool;

/// A counted hold on one KV block. The block goes back to its pool when the last hold dies: that is the only way back.
class BlockRef {
 public:
  BlockRef() = default;
  BlockRef(const BlockRef& other);
  BlockRef(BlockRef&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)), id_(other.id_) {}
  BlockRef& operator=(BlockRef other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~BlockRef() { reset(); }

  void reset() noexcept;
  [[nodiscard]] BlockId id() const { return id_; }
  explicit operator bool() const { return pool_ != nullptr; }

 private:
  friend class BlockPool;
  BlockRef(BlockPool* pool, BlockId id) : pool_(pool), id_(id) {}

  BlockPool* pool_ = nullptr;
  BlockId id_ = 0;
};

/// Descriptors of a fixed number of KV blocks. A block is held (somebody has a BlockRef), cached (nobody has, but the
/// prefix index knows what is in it) or free. Cached blocks are kept in the order in which their last hold died; of the free
/// ones the latest is given first, so that memory which was never needed is never touched.
/// Not synchronised: one thread owns a pool and its refs. Everything is O(1) but `check`.
class BlockPool {
 public:
  explicit BlockPool(int num_blocks);
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// A free block; nothing when none is free (cached ones must be taken out of the index first).
  [[nodiscard]] std::optional<BlockRef> allocate();
  /// Another hold on a held block, or the first on a cached one.
  [[nodiscard]] BlockRef share(BlockId id);
  /// Whether the prefix index knows the block. Leaving the index frees a block that nobody holds.
  void set_indexed(BlockId id, bool indexed);
  /// The cached block that has been without a holder for longest.
  [[nodiscard]] std::optional<BlockId> oldest_cached() const;

  [[nodiscard]] int refs(BlockId id) const { return blocks_[index(id)].refs; }
  [[nodiscard]] bool indexed(BlockId id) const { return blocks_[index(id)].indexed; }
  [[nodiscard]] int total() const { return static_cast<int>(blocks_.size()) - num_sentinels; }
  [[nodiscard]] int free_count() const { return free_count_; }
  [[nodiscard]] int cached_count() const { return cached_count_; }
  [[nodiscard]] int held_count() const { return held_count_; }

  /// free + cached + held == total, from the running counts; cheap.
  [[nodiscard]] bool balanced() const { return free_count_ + cached_count_ + held_count_ == total(); }
  /// Walks both lists and all descriptors; throws std::logic_error that names the first block in a wrong state.
  void check() const;

 private:
  friend class BlockRef;
  struct Block {
    std::int32_t refs = 0;
    bool indexed = false;
    BlockId prev = 0, next = 0;  // in the free list or the cached list; the lists are circular through a sentinel
  };
  static constexpr int num_sentinels = 2;

  [[nodiscard]] static std::size_t index(BlockId id) { return static_cast<std::size_t>(id); }
  [[nodiscard]] BlockId free_list() const { return total(); }
  [[nodiscard]] BlockId cached_list() const { return total() + 1; }
  void add_ref(BlockId id) { ++blocks_[index(id)].refs; }
  void release(BlockId id) noexcept;
  void unlink(BlockId id);
  void link_back(BlockId list, BlockId id);
  void link_front(BlockId list, BlockId id);
  [[nodiscard]] int check_list(BlockId list, bool indexed) const;

  std::vector<Block> blocks_;  // the descriptors, then the two sentinels
  int free_count_ = 0, cached_count_ = 0, held_count_ = 0;
};

inline BlockRef::BlockRef(const BlockRef& other) : pool_(other.pool_), id_(other.id_) {
  if (pool_ != nullptr) pool_->add_ref(id_);
}

inline void BlockRef::reset() noexcept {
  if (pool_ != nullptr) std::exchange(pool_, nullptr)->release(id_);
}

}  // namespace fixpoint::engine
