#include "engine/detail/kv_budget.h"

#include <algorithm>
#include <cstdint>

#include "engine/kv_cache.h"

namespace fixpoint::engine::detail {

std::optional<int> blocks_of_budget(const StepModel& model, const EngineOptions& options, std::size_t budget_bytes) {
  const std::int64_t blocks_per_sequence = (model.context_length() + options.block_size - 1) / options.block_size;
  return blocks_within(budget_bytes, model.kv_bytes_per_block(options.block_size, options.kv_type), blocks_per_sequence * options.max_running);
}

std::optional<std::size_t> host_memory_left(const StepModel& model) {
  const std::size_t available = available_memory_bytes();
  if (available == 0) return std::nullopt;
  return available - std::min(available, model.mapped_weight_bytes());
}

}  // namespace fixpoint::engine::detail
