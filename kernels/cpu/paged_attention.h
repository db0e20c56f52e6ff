#pragma once

#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/kv_layout.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_team.h"

namespace fixpoint::kernels::cpu {

/// Causal attention over paged keys and values. Query rows of one sequence that share a KV head (its group of heads,
/// and neighbouring tokens) go together, up to eight, so that keys and values are read once for all of them. The
/// context is reduced in splits of 256 positions whose results are combined in order; with few rows, splits of one
/// sequence run on several threads, and the result is the same.
class PagedAttention {
 public:
  PagedAttention(const KernelTable& table, ThreadTeam& team) : table_(table), team_(team) {}
  void run(const Tensor& q, const KvLayer& layer, const PagedBatch& batch, float scale, const Tensor& out);

 private:
  /// Query rows first_row .. first_row + rows of sequence `seq`; row i is token i / group, head i % group.
  struct Chunk {
    std::int32_t seq;
    std::int32_t first_row;
    std::int32_t rows;
    std::int32_t num_splits;
    std::int64_t first_state;  ///< of the chunk's first split, when splits run on several threads
  };
  struct Call;

  void plan(const Call& call);
  void whole_chunk(const Call& call, const Chunk& chunk, std::int64_t kv_head, std::byte* scratch) const;
  void split(const Call& call, const Chunk& chunk, std::int64_t kv_head, std::int32_t index, float* q_memory,
             AttentionState& state) const;
  void split_over_threads(const Call& call);
  void finish(const Call& call, const Chunk& chunk, std::int64_t kv_head, const AttentionState& state) const;

  const KernelTable& table_;
  ThreadTeam& team_;
  std::vector<Chunk> chunks_;
  std::int64_t num_states_ = 0;  ///< splits of all chunks, for one KV head
  Scratch scratch_;
};

}  // namespace fixpoint::kernels::cpu
