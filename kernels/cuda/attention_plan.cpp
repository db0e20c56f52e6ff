#include "kernels/cuda/attention_plan.h"

#include <algorithm>

namespace fixpoint::kernels::cuda {
namespace {

// Up to so many tokens, a sequence's tiles alone would leave most of a device idle while each walks the whole context: 64 tokens
// of 28 heads over 4 KV heads are 32 prefill tiles for 132 multiprocessors, 17 tokens are 8. From about there on a quarter of
// the device on its tensor cores is expected to be worth all of it without them: deduced, not measured.
constexpr std::int32_t kFewTokens = 64;

}  // namespace

void AttentionPlan::build(const PagedBatch& batch, std::int32_t tokens_per_tile, std::int32_t prefill_tokens) {
  tiles.clear();
  combine.clear();
  prefill.clear();
  slots = 0;
  for (std::int32_t s = 0; s < batch.num_seqs(); ++s) {
    const std::int32_t begin = batch.q_indptr[static_cast<std::size_t>(s)];
    const std::int32_t end = batch.q_indptr[static_cast<std::size_t>(s) + 1];
    if (prefill_tokens > 0 && end - begin > kFewTokens) {
      for (std::int32_t last = end; last > begin; last -= prefill_tokens) {
        const std::int32_t first = std::max(begin, last - prefill_tokens);
        prefill.push_back({.sequence = s, .first_token = first, .num_tokens = last - first});
      }
      continue;
    }
    for (std::int32_t first = begin; first < end; first += tokens_per_tile) {
      const std::int32_t count = std::min(tokens_per_tile, end - first);
      const auto positions = batch.positions.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      const std::int32_t num_splits = std::ranges::max(positions) / kSplitPositions + 1;
      AttentionTile tile{s, first, count, -1, 0, num_splits};
      if (num_splits == 1 || end - begin > kFewTokens || slots + num_splits > kMaxSlots) {
        tiles.push_back(tile);
        continue;
      }
      tile.slot = slots;
      combine.push_back(tile);
      for (tile.split = 0; tile.split < num_splits; ++tile.split) tiles.push_back(tile);
      slots += num_splits;
    }
  }
}

}  // namespace fixpoint::kernels::cuda
