#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/kv_layout.h"
#include "kernels/paged_batch.h"

namespace fixpoint::kernels::cpu {

/// How a step's attention is cut into work, so that blocks that several sequences share are read once for all of them.
///
/// The context is reduced in splits of kSplitSubTiles sub-tiles. The step's sequences are put in an order in which those
/// that have a split's blocks in common are neighbours, as in the leaves of a tree of prefixes; a piece is some query rows of
/// neighbours that share at least their first split (or of one sequence), and one thread takes a piece through its splits: what
/// is shared there is read for all of the piece's rows before the next split is touched.
class AttentionPlan {
 public:
  /// A sequence at its place in the order.
  struct Member {
    std::int32_t seq;
    std::int32_t first_row;      ///< in the order; a row is a token and one of the group's heads
    std::int32_t shared_splits;  ///< splits, from the first, whose blocks it shares with the member before
  };
  /// Rows first_row .. first_row + rows of the order, which begin in members[first_member].
  struct Piece {
    std::int32_t first_member;
    std::int32_t first_row;
    std::int32_t rows;
    std::int32_t num_splits;
    std::int64_t cost;  ///< positions that its rows attend to
  };

  /// `group` query heads for each KV head. A piece has at most `most_rows` rows.
  void make(const PagedBatch& batch, const KvLayout& layout, std::int64_t group, std::int32_t most_rows);

  /// The last member is an end: its first_row is the number of rows.
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  /// Those with the most to do come first, so that the threads end together.
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  /// Splits of all pieces, for one KV head.
  [[nodiscard]] std::int64_t num_splits() const { return num_splits_; }

 private:
  /// Places first..last of the order, whose sequences share all splits before some level.
  struct Run {
    std::int32_t first, last;
  };
  struct Keyed {
    std::int32_t key;  ///< the first block of the split; -1 where the sequence has not all of the split's blocks
    std::int32_t seq;
  };

  void order(const PagedBatch& batch, const KvLayout& layout);
  void refine(const PagedBatch& batch, Run run, std::int32_t level, std::int32_t first_block, std::int32_t end_block);
  void number_rows(const PagedBatch& batch, std::int64_t group);
  void cut(const PagedBatch& batch, const KvLayout& layout, std::int64_t group, std::int32_t most_rows);

  std::vector<Member> members_;
  std::vector<Piece> pieces_;
  std::vector<Run> runs_, next_runs_;
  std::vector<Keyed> keyed_;
  std::int64_t num_splits_ = 0;
};

}  // namespace fixpoint::kernels::cpu
