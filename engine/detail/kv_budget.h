#pragma once

#include <cstddef>
#include <optional>

#include "engine/engine.h"
#include "engine/step_model.h"

namespace fixpoint::engine::detail {

/// Blocks that a budget holds, but no more than all slots at full context can use; nothing when not even one fits. The
/// options' block_size and max_running must be in range.
[[nodiscard]] std::optional<int> blocks_of_budget(const StepModel& model, const EngineOptions& options, std::size_t budget_bytes);

/// Bytes of the host's memory that keys and values could take: what is available, without what the model's mapped weights need.
/// Unset where the system doesn't say.
[[nodiscard]] std::optional<std::size_t> host_memory_left(const StepModel& model);

}  // namespace fixpoint::engine::detail
