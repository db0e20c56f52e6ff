#pragma once

#include <cstdint>
#include <vector>

#include "engine/scheduler.h"
#include "engine/step_model.h"

namespace fixpoint::engine::detail {

/// The flat arrays of one step; kept between steps for their memory.
class StepBatch {
 public:
  /// Valid until the next call, as long as the batch lives.
  [[nodiscard]] StepInput build(const StepPlan& plan, int block_size);

 private:
  std::vector<TokenId> tokens_;
  std::vector<std::int32_t> q_indptr_, block_indptr_, block_ids_, last_block_len_, positions_, logit_rows_;
};

}  // namespace fixpoint::engine::detail
