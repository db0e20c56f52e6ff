#pragma once

#include <memory>

#include "kernels/backend.h"

namespace fixpoint::kernels {

/// A backend whose tensors may lie in the host's memory, over one whose tensors must not: every operand is copied into
/// memory of `device` that is exactly as large, every result back. Weights and KV are `device`'s own.
[[nodiscard]] std::unique_ptr<Backend> stage_through_device_memory(std::unique_ptr<Backend> device);

}  // namespace fixpoint::kernels
