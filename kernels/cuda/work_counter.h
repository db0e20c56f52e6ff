#pragma once

#include "kernels/backend.h"

namespace fixpoint::kernels::cuda {

/// What a recorded step costs, in terms that differ from step to step.
struct StepWork {
  std::uint64_t flops_per_row = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t flops_per_pair = 0;          ///< a token and a position it attends to
  std::uint64_t kv_bytes_per_position = 0;   ///< of a sequence's context
};

/// Counts work for Backend::counters, also of steps that are repeated without calling the operations.
class WorkCounter {
 public:
  [[nodiscard]] const OpCounters& totals() const { return totals_; }
  void restore(const OpCounters& totals) { totals_ = totals; }

  void product(std::int64_t rows, const Weight& w) {
    const auto per_row = static_cast<std::uint64_t>(2 * w.rows() * w.cols());
    recorded_.flops_per_row += per_row;
    recorded_.weight_bytes += static_cast<std::uint64_t>(w.bytes());
    totals_.flops += per_row * static_cast<std::uint64_t>(rows);
    totals_.weight_bytes += static_cast<std::uint64_t>(w.bytes());
  }
  void attention(std::int32_t heads, const KvShape& kv, const PagedBatch& batch) {
    StepWork work;
    work.flops_per_pair = static_cast<std::uint64_t>(4 * std::int64_t{heads} * kv.head_dim);
    work.kv_bytes_per_position = static_cast<std::uint64_t>(2 * kv.num_kv_heads * kv_row_bytes(kv.type, kv.head_dim));
    recorded_.flops_per_pair += work.flops_per_pair;
    recorded_.kv_bytes_per_position += work.kv_bytes_per_position;
    repeat(work, batch);
  }

  /// Between these two, what is counted is that of one step; the totals stay as they were.
  void begin_recording() {
    recorded_ = {};
    before_ = totals_;
  }
  [[nodiscard]] StepWork end_recording() {
    totals_ = before_;
    return recorded_;
  }
  void repeat(const StepWork& work, const PagedBatch& batch) {
    std::uint64_t pairs = 0;
    std::uint64_t positions = 0;
    for (const std::int32_t p : batch.positions) pairs += static_cast<std::uint64_t>(p) + 1;
    for (std::int32_t s = 0; s < batch.num_seqs(); ++s) positions += static_cast<std::uint64_t>(batch.context_len(s));
    totals_.flops += work.flops_per_row * static_cast<std::uint64_t>(batch.num_tokens()) + work.flops_per_pair * pairs;
    totals_.weight_bytes += work.weight_bytes;
    totals_.kv_bytes += work.kv_bytes_per_position * positions;
  }

 private:
  OpCounters totals_, before_;
  StepWork recorded_;
};

}  // namespace fixpoint::kernels::cuda
