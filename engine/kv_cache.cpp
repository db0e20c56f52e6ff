#include "engine/kv_cache.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace fixpoint::engine {

std::optional<int> blocks_within(std::size_t budget_bytes, std::size_t bytes_per_block, std::int64_t useful_blocks) {
  if (bytes_per_block == 0) return std::nullopt;
  const auto fit = static_cast<std::uint64_t>(budget_bytes / bytes_per_block);
  const auto most = static_cast<std::uint64_t>(std::clamp<std::int64_t>(useful_blocks, 0, std::numeric_limits<BlockId>::max() - 2));
  const auto blocks = std::min(fit, most);
  if (blocks == 0) return std::nullopt;
  return static_cast<int>(blocks);
}

KvCache::KvCache(int num_blocks, int block_size, int max_pinned_blocks)
    : block_size_(block_size),
      max_pinned_blocks_(max_pinned_blocks),
      pool_(num_blocks),
      prefixes_(pool_, block_size),
      pin_count_(static_cast<std::size_t>(num_blocks)) {}

bool KvCache::allocate(int count, std::vector<BlockRef>& blocks) {
  if (count > available()) return false;
  for (; count > 0; --count) {
    if (pool_.free_count() == 0) prefixes_.evict_oldest();
    blocks.push_back(*pool_.allocate());
  }
  return true;
}

void KvCache::count_pin(const PrefixMatch& match, int change) {
  const auto count = [&](const BlockRef& block) {
    int& pins = pin_count_[static_cast<std::size_t>(block.id())];
    const int before = std::exchange(pins, pins + change);
    if (before == 0) ++pinned_blocks_;
    if (pins == 0) --pinned_blocks_;
  };
  for (const BlockRef& block : match.blocks) count(block);
  if (match.partial) count(match.partial);
}

KvCache::Pins::iterator KvCache::end_pin(Pins::iterator pin) {
  count_pin(pin->match, -1);
  return pins_.erase(pin);
}

void KvCache::pin(std::uint64_t id, std::string_view tenant, std::string_view session, std::span<const TokenId> tokens,
                  Clock::time_point expiry) {
  PinnedPrefix pinned{id, std::string(tenant), std::string(session), prefixes_.match(tenant, tokens), expiry};
  unpin(tenant, session);
  if (pinned.match.blocks.empty() && !pinned.match.partial) return;
  count_pin(pinned.match, 1);
  pins_.push_back(std::move(pinned));
  while (pinned_blocks_ > max_pinned_blocks_ && drop_oldest_pin()) {
  }
}

void KvCache::unpin(std::uint64_t id) {
  const auto pin = std::find_if(pins_.begin(), pins_.end(), [id](const PinnedPrefix& p) { return p.id == id; });
  if (id != 0 && pin != pins_.end()) end_pin(pin);
}

void KvCache::unpin(std::string_view tenant, std::string_view session) {
  const auto pin = std::find_if(pins_.begin(), pins_.end(), [&](const PinnedPrefix& p) { return p.tenant == tenant && p.session == session; });
  if (!session.empty() && pin != pins_.end()) end_pin(pin);
}

void KvCache::expire_pins(Clock::time_point now) {
  for (auto pin = pins_.begin(); pin != pins_.end();) pin = pin->expiry <= now ? end_pin(pin) : std::next(pin);
}

bool KvCache::drop_oldest_pin() {
  if (pins_.empty()) return false;
  end_pin(pins_.begin());
  return true;
}

std::optional<KvCache::Clock::time_point> KvCache::next_pin_expiry() const {
  if (pins_.empty()) return std::nullopt;
  return std::min_element(pins_.begin(), pins_.end(), [](const auto& a, const auto& b) { return a.expiry < b.expiry; })->expiry;
}

}  // namespace fixpoint::engine
