#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/kv_layout.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_team.h"

namespace fixpoint::kernels::cpu {

/// Causal attention over paged keys and values. Up to eight query rows that share a KV head and the blocks of a split go
/// together, whichever sequences they belong to, so that keys and values are read once for all of them (see AttentionPlan).
/// The context is reduced in splits of 16 sub-tiles (256 positions where blocks are multiples of 16) whose results are combined
/// in order; with few rows, splits run on several threads. A row's result is the same bits in all cases.
class PagedAttention {
 public:
  PagedAttention(const KernelTable& table, ThreadTeam& team) : table_(table), team_(team) {}
  void run(const Tensor& q, const KvLayer& layer, const PagedBatch& batch, float scale, const Tensor& out);

 private:
  friend class AttentionStep;
  using Piece = AttentionPlan::Piece;
  struct Call;
  struct Rows;

  void plan(const Call& call);
  void whole_piece(const Call& call, const Piece& piece, std::int64_t kv_head, std::byte* scratch) const;
  void split_over_threads(const Call& call);
  template <class Done>
  void split(const Call& call, const Piece& piece, std::int64_t kv_head, std::int32_t index, float* floats, Done done) const;
  void compute(const Call& call, const Rows& rows, std::int64_t kv_head, std::int32_t index, float* q_memory, AttentionState& state) const;
  template <class RowAt>
  void finish(const Call& call, const Piece& piece, std::int64_t kv_head, RowAt row_at) const;

  const KernelTable& table_;
  ThreadTeam& team_;
  AttentionPlan plan_;
  bool in_step_ = false;
  bool planned_ = false;
  Scratch scratch_;
};

/// While it lives, all calls of the attention are given the same batch and number of heads: they are planned once.
class AttentionStep {
 public:
  explicit AttentionStep(PagedAttention& attention) : attention_(attention) { attention_.in_step_ = true; }
  ~AttentionStep() { attention_.in_step_ = attention_.planned_ = false; }
  AttentionStep(const AttentionStep&) = delete;
  AttentionStep& operator=(const AttentionStep&) = delete;

 private:
  PagedAttention& attention_;
};

}  // namespace fixpoint::kernels::cpu
