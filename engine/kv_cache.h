#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/block_pool.h"
#include "engine/prefix_cache.h"

namespace fixpoint::engine {

/// How many blocks fit a budget: `budget_bytes / bytes_per_block`, but no more than `useful_blocks`; nothing when not even
/// one fits.
[[nodiscard]] std::optional<int> blocks_within(std::size_t budget_bytes, std::size_t bytes_per_block, std::int64_t useful_blocks);

/// The blocks that index the model's KV storage, what is known of their contents, and who wants them kept.
/// Not synchronised: the engine's thread owns it.
class KvCache {
 public:
  using Clock = std::chrono::steady_clock;

  /// Pins together hold at most `max_pinned_blocks`; beyond that the oldest end.
  KvCache(int num_blocks, int block_size, int max_pinned_blocks);

  [[nodiscard]] int block_size() const { return block_size_; }
  [[nodiscard]] int blocks_for(std::int64_t tokens) const {
    return static_cast<int>((tokens + block_size_ - 1) / block_size_);
  }
  /// Blocks that `allocate` could give.
  [[nodiscard]] int available() const { return pool_.free_count() + pool_.cached_count(); }
  /// Appends `count` blocks, evicting what nobody holds; all or nothing.
  [[nodiscard]] bool allocate(int count, std::vector<BlockRef>& blocks);

  /// Holds what is cached of `tokens` until `expiry`. A pin with the same tenant and non-empty session is replaced.
  /// An `id` (not 0) lets `unpin` end it earlier.
  void pin(std::uint64_t id, std::string_view tenant, std::string_view session, std::span<const TokenId> tokens,
           Clock::time_point expiry);
  void unpin(std::uint64_t id);
  /// Ends the session's pin, where there is one; an empty session has none.
  void unpin(std::string_view tenant, std::string_view session);
  void expire_pins(Clock::time_point now);
  /// Ends the pin that was made first; false when there is none.
  bool drop_oldest_pin();
  [[nodiscard]] std::optional<Clock::time_point> next_pin_expiry() const;
  [[nodiscard]] int pinned_blocks() const { return pinned_blocks_; }
  [[nodiscard]] std::size_t num_pins() const { return pins_.size(); }

  [[nodiscard]] BlockPool& pool() { return pool_; }
  [[nodiscard]] const BlockPool& pool() const { return pool_; }
  [[nodiscard]] PrefixCache& prefixes() { return prefixes_; }
  [[nodiscard]] const PrefixCache& prefixes() const { return prefixes_; }

 private:
  struct PinnedPrefix {
    std::uint64_t id = 0;
    std::string tenant, session;
    PrefixMatch match;
    Clock::time_point expiry;
  };
  using Pins = std::list<PinnedPrefix>;

  void count_pin(const PrefixMatch& match, int change);
  Pins::iterator end_pin(Pins::iterator pin);

  int block_size_;
  int max_pinned_blocks_;
  int pinned_blocks_ = 0;       // distinct blocks
  BlockPool pool_;              // before everything that holds its blocks
  PrefixCache prefixes_;
  std::vector<int> pin_count_;  // [num_blocks]
  Pins pins_;                   // oldest first
};

}  // namespace fixpoint::engine
