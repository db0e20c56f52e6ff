#pragma once

#include <cstdint>
#include <vector>

#include "kernels/paged_batch.h"

namespace fixpoint::kernels::cuda {

/// Positions that one part of a context holds. A query's sums go over the parts in order, whether one block takes them one
/// after another or each has its own: the result is the same bits.
inline constexpr std::int32_t kSplitPositions = 256;
/// Query rows of a tile: tokens times the heads that share a KV head.
inline constexpr std::int32_t kMaxTileRows = 8;

/// Query rows of a prefill tile: 16 for each of four warps.
inline constexpr std::int32_t kPrefillRows = 64;

/// Most partial results of a step: beyond, there are blocks enough without splitting.
inline constexpr std::int32_t kMaxSlots = 4096;

/// What one block computes: neighbouring tokens of one sequence against its whole context (`split` below 0), or against one
/// part of it, in which case the part's sums go to place `slot + split` and are combined afterwards.
struct AttentionTile {
  std::int32_t sequence = -1;  ///< below 0: nothing to do
  std::int32_t first_token = 0, num_tokens = 0;
  std::int32_t split = -1;
  std::int32_t slot = 0;
  std::int32_t num_splits = 0;
};

/// How a step's attention is cut into blocks.
struct AttentionPlan {
  std::vector<AttentionTile> tiles;
  std::vector<AttentionTile> combine;  ///< one for each tile that was split
  std::vector<AttentionTile> prefill;  ///< never split; those with the longest contexts of a sequence first
  std::int32_t slots = 0;              ///< partial results needed

  /// `tokens_per_tile` tokens share the keys and values that a block reads. Sequences with few tokens in the step (decoding,
  /// verification, a little that is new after a long cached prefix) are split over their contexts: they would leave the device
  /// idle. Those with more than 64 go into tiles of `prefill_tokens`, unless that is 0.
  void build(const PagedBatch& batch, std::int32_t tokens_per_tile, std::int32_t prefill_tokens = 0);
};

/// Tokens in a tile for `group` query heads a KV head.
[[nodiscard]] constexpr std::int32_t tokens_per_tile(std::int32_t group) {
  return group >= kMaxTileRows ? 1 : kMaxTileRows / group;
}

/// The same for prefill tiles; 0: a group is too large for one.
[[nodiscard]] constexpr std::int32_t prefill_tokens_per_tile(std::int32_t group) { return kPrefillRows / group; }

}  // namespace fixpoint::kernels::cuda
