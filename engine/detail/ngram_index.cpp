#include "engine/detail/ngram_index.h"

#include <algorithm>

#include "engine/counter_rng.h"

namespace fixpoint::engine::detail {

std::size_t NgramIndex::slot_of(std::span<const TokenId> text, std::span<const TokenId> run) const {
  std::uint64_t hash = run.size();
  for (const TokenId token : run) hash = mix64(hash ^ static_cast<std::uint64_t>(token));
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(hash) & mask;
  while (slots_[slot] > 0) {
    const auto known = text.subspan(static_cast<std::size_t>(slots_[slot]) - n_, n_);
    if (std::equal(run.begin(), run.end(), known.begin())) break;
    slot = (slot + 1) & mask;
  }
  return slot;
}

void NgramIndex::grow(std::span<const TokenId> text) {
  std::vector<std::int32_t> old(std::max(first_slots, slots_.size() * 2), 0);
  old.swap(slots_);
  for (const std::int32_t end : old) {
    if (end > 0) slots_[slot_of(text, text.subspan(static_cast<std::size_t>(end) - n_, n_))] = end;
  }
}

void NgramIndex::push(std::span<const TokenId> text) {
  if (text.size() <= n_) return;
  if ((used_ + 1) * 2 > slots_.size()) grow(text);
  const std::size_t run_end = text.size() - 1;
  std::int32_t& end = slots_[slot_of(text, text.first(run_end).last(n_))];
  used_ += end == 0 ? 1 : 0;
  end = static_cast<std::int32_t>(run_end);
}

std::optional<std::size_t> NgramIndex::find(std::span<const TokenId> text, std::span<const TokenId> tail) const {
  if (tail.size() < n_ || slots_.empty()) return std::nullopt;
  const std::int32_t end = slots_[slot_of(text, tail.last(n_))];
  if (end == 0) return std::nullopt;
  return static_cast<std::size_t>(end);
}

}  // namespace fixpoint::engine::detail
