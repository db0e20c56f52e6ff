#include "kernels/cpu/attention_plan.h"

#include <algorithm>
#include <functional>
#include <span>

namespace fixpoint::kernels::cpu {
namespace {

std::span<const std::int32_t> blocks_of(const PagedBatch& batch, std::int32_t seq) {
  const auto s = static_cast<std::size_t>(seq);
  const auto first = static_cast<std::size_t>(batch.block_indptr[s]);
  return batch.block_ids.subspan(first, static_cast<std::size_t>(batch.block_indptr[s + 1]) - first);
}

std::int32_t first_token(const PagedBatch& batch, std::int32_t seq) { return batch.q_indptr[static_cast<std::size_t>(seq)]; }

}  // namespace

void AttentionPlan::make(const PagedBatch& batch, const KvLayout& layout, std::int64_t group, std::int32_t most_rows) {
  order(batch, layout);
  number_rows(batch, group);
  cut(batch, layout, group, most_rows);
}

// Level by level: what shares the splits so far is sorted by the blocks of the next one.
void AttentionPlan::order(const PagedBatch& batch, const KvLayout& layout) {
  members_.clear();
  for (std::int32_t s = 0; s < batch.num_seqs(); ++s) {
    if (first_token(batch, s + 1) > first_token(batch, s)) members_.push_back({s, 0, 0});
  }
  runs_.assign(1, {0, static_cast<std::int32_t>(members_.size())});
  for (std::int32_t level = 0; !runs_.empty(); ++level) {
    next_runs_.clear();
    const std::int32_t first_block = level * kSplitSubTiles / layout.sub_tiles;
    const std::int32_t end_block = ((level + 1) * kSplitSubTiles - 1) / layout.sub_tiles + 1;
    for (const Run run : runs_) {
      if (run.last - run.first > 1) refine(batch, run, level, first_block, end_block);
    }
    runs_.swap(next_runs_);
  }
}

void AttentionPlan::refine(const PagedBatch& batch, Run run, std::int32_t level, std::int32_t first_block, std::int32_t end_block) {
  keyed_.clear();
  for (std::int32_t i = run.first; i < run.last; ++i) {
    const std::int32_t seq = members_[static_cast<std::size_t>(i)].seq;
    const auto blocks = blocks_of(batch, seq);
    const bool whole = static_cast<std::int32_t>(blocks.size()) >= end_block;
    keyed_.push_back({whole ? blocks[static_cast<std::size_t>(first_block)] : -1, seq});
  }
  std::ranges::stable_sort(keyed_, {}, &Keyed::key);
  const auto split_of = [&](const Keyed& k) {
    return blocks_of(batch, k.seq).subspan(static_cast<std::size_t>(first_block), static_cast<std::size_t>(end_block - first_block));
  };
  for (std::size_t at = 0; at < keyed_.size();) {
    std::size_t end = at + 1;
    if (keyed_[at].key >= 0) {  // those with all of its blocks; others with the same first one come after them
      const auto leader = split_of(keyed_[at]);
      const auto same_key = std::ranges::find_if(keyed_.begin() + static_cast<std::ptrdiff_t>(end), keyed_.end(),
                                                 [&](const Keyed& k) { return k.key != keyed_[at].key; });
      const auto others = std::stable_partition(keyed_.begin() + static_cast<std::ptrdiff_t>(end), same_key,
                                                [&](const Keyed& k) { return std::ranges::equal(split_of(k), leader); });
      end = static_cast<std::size_t>(others - keyed_.begin());
    }
    const auto place = static_cast<std::size_t>(run.first);
    for (std::size_t i = at; i < end; ++i) {
      Member& member = members_[place + i];
      member.seq = keyed_[i].seq;
      if (i > at) member.shared_splits = level + 1;
    }
    if (end - at > 1) next_runs_.push_back({static_cast<std::int32_t>(place + at), static_cast<std::int32_t>(place + end)});
    at = end;
  }
}

void AttentionPlan::number_rows(const PagedBatch& batch, std::int64_t group) {
  std::int32_t row = 0;
  for (Member& member : members_) {
    member.first_row = row;
    row += (first_token(batch, member.seq + 1) - first_token(batch, member.seq)) * static_cast<std::int32_t>(group);
  }
  members_.push_back({-1, row, 0});
}

void AttentionPlan::cut(const PagedBatch& batch, const KvLayout& layout, std::int64_t group, std::int32_t most_rows) {
  pieces_.clear();
  num_splits_ = 0;
  const auto g = static_cast<std::int32_t>(group);
  std::int32_t last_position = 0;
  const auto close = [&] {
    Piece& piece = pieces_.back();
    piece.num_splits = layout.sub_tile_of(last_position) / kSplitSubTiles + 1;
    num_splits_ += piece.num_splits;
  };
  for (std::size_t m = 0; m + 1 < members_.size(); ++m) {
    const Member& member = members_[m];
    const std::int32_t token = first_token(batch, member.seq);
    for (std::int32_t row = member.first_row; row < members_[m + 1].first_row; ++row) {
      const bool apart = row == member.first_row && member.shared_splits == 0;
      if (apart || pieces_.back().rows == most_rows) {
        if (!pieces_.empty()) close();
        pieces_.push_back({static_cast<std::int32_t>(m), row, 0, 0, 0});
        last_position = 0;
      }
      const std::int32_t position = batch.positions[static_cast<std::size_t>(token + (row - member.first_row) / g)];
      last_position = std::max(last_position, position);
      ++pieces_.back().rows;
      pieces_.back().cost += position + 1;
    }
  }
  if (!pieces_.empty()) close();
  std::ranges::stable_sort(pieces_, std::greater<>(), &Piece::cost);
}

}  // namespace fixpoint::kernels::cpu
