#include "engine/detail/step_batch.h"

#include <algorithm>
#include <cstddef>

namespace fixpoint::engine::detail {

StepInput StepBatch::build(const StepPlan& plan, int block_size) {
  tokens_.clear();
  positions_.clear();
  block_ids_.clear();
  last_block_len_.clear();
  logit_rows_.clear();
  q_indptr_.assign(1, 0);
  block_indptr_.assign(1, 0);
  for (const Chunk& chunk : plan.chunks) {
    const int end = chunk.begin + chunk.count + chunk.drafts;
    const auto tokens = chunk.sequence->tokens().subspan(static_cast<std::size_t>(chunk.begin), static_cast<std::size_t>(chunk.count));
    const auto drafts = chunk.sequence->drafts().first(static_cast<std::size_t>(chunk.drafts));
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    tokens_.insert(tokens_.end(), drafts.begin(), drafts.end());
    for (int position = chunk.begin; position < end; ++position) positions_.push_back(position);
    const int num_blocks = (end + block_size - 1) / block_size;
    const auto blocks = std::span(chunk.sequence->blocks()).first(static_cast<std::size_t>(num_blocks));
    const std::size_t first = block_ids_.size();
    block_ids_.resize(first + blocks.size());  // most of a batch's numbers: long contexts have hundreds
    std::ranges::transform(blocks, block_ids_.begin() + static_cast<std::ptrdiff_t>(first), &BlockRef::id);
    q_indptr_.push_back(static_cast<std::int32_t>(tokens_.size()));
    block_indptr_.push_back(static_cast<std::int32_t>(block_ids_.size()));
    last_block_len_.push_back(end - (num_blocks - 1) * block_size);
    if (!chunk.samples) continue;
    for (std::int32_t row = q_indptr_.back() - 1 - chunk.drafts; row < q_indptr_.back(); ++row) logit_rows_.push_back(row);
  }
  return {tokens_, {block_size, q_indptr_, block_indptr_, block_ids_, last_block_len_, positions_}, logit_rows_};
}

}  // namespace fixpoint::engine::detail
