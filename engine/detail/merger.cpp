#include "engine/detail/merger.h"

#include <algorithm>
#include <array>
#include <bit>
#include <queue>

namespace fixpoint::engine::detail {
namespace {

using Merge = MergeTable::Merge;

constexpr std::size_t kShort = 32;

void merge_short(const MergeTable& table, std::vector<TokenId>& symbols) {
  std::array<Merge, kShort> merges;  // merges[i]: what symbols i and i + 1 become
  std::size_t count = symbols.size();
  for (std::size_t i = 0; i + 1 < count; ++i) {
    merges[i] = table.find(symbols[i], symbols[i + 1]);
  }
  while (count > 1) {
    const auto* best = std::min_element(merges.begin(), merges.begin() + static_cast<std::ptrdiff_t>(count - 1),
                                        [](const Merge& a, const Merge& b) { return a.rank < b.rank; });
    if (best->rank == MergeTable::kNone) {
      break;
    }
    const auto at = static_cast<std::size_t>(best - merges.begin());
    symbols[at] = best->result;
    std::copy(symbols.begin() + static_cast<std::ptrdiff_t>(at + 2), symbols.begin() + static_cast<std::ptrdiff_t>(count),
              symbols.begin() + static_cast<std::ptrdiff_t>(at + 1));
    std::copy(merges.begin() + static_cast<std::ptrdiff_t>(at + 1), merges.begin() + static_cast<std::ptrdiff_t>(count - 1),
              merges.begin() + static_cast<std::ptrdiff_t>(at));
    --count;
    if (at + 1 < count) {
      merges[at] = table.find(symbols[at], symbols[at + 1]);
    }
    if (at > 0) {
      merges[at - 1] = table.find(symbols[at - 1], symbols[at]);
    }
  }
  symbols.resize(count);
}

/// A merge that may be due; stale once its place holds something else.
struct Candidate {
  std::uint32_t rank;
  std::uint32_t left;
  TokenId result;
};
struct Later {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }
};

class LongWord {
 public:
  LongWord(const MergeTable& table, std::vector<TokenId>& symbols)
      : table_(table), symbols_(symbols), next_(symbols.size()), previous_(symbols.size()) {
    for (std::uint32_t i = 0; i < symbols.size(); ++i) {
      next_[i] = i + 1;
      previous_[i] = i - 1;
    }
  }

  void merge() {
    std::vector<Candidate> first;
    for (std::uint32_t i = 0; i + 1 < symbols_.size(); ++i) {
      if (const Merge found = table_.find(symbols_[i], symbols_[i + 1]); found.rank != MergeTable::kNone) {
        first.push_back({found.rank, i, found.result});
      }
    }
    queue_ = Queue(Later{}, std::move(first));
    while (!queue_.empty()) {
      const Candidate candidate = queue_.top();
      queue_.pop();
      apply(candidate);
    }
    std::erase(symbols_, kGone);
  }

 private:
  using Queue = std::priority_queue<Candidate, std::vector<Candidate>, Later>;
  static constexpr TokenId kGone = -1;

  [[nodiscard]] bool is_end(std::uint32_t at) const { return at >= symbols_.size(); }

  void apply(const Candidate& candidate) {
    const std::uint32_t left = candidate.left;
    const std::uint32_t right = next_[left];
    if (symbols_[left] == kGone || is_end(right)) {
      return;
    }
    const Merge now = table_.find(symbols_[left], symbols_[right]);
    if (now.rank != candidate.rank || now.result != candidate.result) {
      return;
    }
    symbols_[left] = candidate.result;
    symbols_[right] = kGone;
    next_[left] = next_[right];
    if (!is_end(next_[left])) {
      previous_[next_[left]] = left;
      consider(left, next_[left]);
    }
    if (!is_end(previous_[left])) {
      consider(previous_[left], left);
    }
  }

  void consider(std::uint32_t left, std::uint32_t right) {
    if (const Merge found = table_.find(symbols_[left], symbols_[right]); found.rank != MergeTable::kNone) {
      queue_.push({found.rank, left, found.result});
    }
  }

  const MergeTable& table_;
  std::vector<TokenId>& symbols_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> previous_;  // of the first symbol: past the end
  Queue queue_;
};

std::uint64_t key_of(TokenId left, TokenId right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U) | static_cast<std::uint32_t>(right);
}

}  // namespace

MergeTable::MergeTable(std::size_t merges) : slots_(std::bit_ceil(2 * merges + 2)) {}

std::size_t MergeTable::slot_of(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  std::uint64_t mixed = key * 0x9E3779B97F4A7C15U;
  mixed ^= mixed >> 32U;
  std::size_t at = mixed & mask;
  while (slots_[at].key != key && slots_[at].key != UINT64_MAX) {
    at = (at + 1) & mask;
  }
  return at;
}

void MergeTable::insert(TokenId left, TokenId right, Merge merge) {
  const std::uint64_t key = key_of(left, right);
  Slot& slot = slots_[slot_of(key)];
  if (slot.key != key) {
    slot = {key, merge};
  }
}

MergeTable::Merge MergeTable::find(TokenId left, TokenId right) const {
  const std::uint64_t key = key_of(left, right);
  const Slot& slot = slots_[slot_of(key)];
  return slot.key == key ? slot.merge : Merge{};
}

void merge_symbols(const MergeTable& table, std::vector<TokenId>& symbols) {
  if (symbols.size() <= kShort) {
    merge_short(table, symbols);
  } else {
    LongWord(table, symbols).merge();
  }
}

}  // namespace fixpoint::engine::detail
