#pragma once

#include <cstddef>

#include "kernels/tensor.h"

namespace fixpoint::kernels::cpu {

/// Zeroed memory that starts on a 2 MiB boundary, in large pages where the system gives them: streaming weights from
/// large pages reads a tenth to a third faster. Pages that nobody touches take no memory.
[[nodiscard]] Buffer allocate_huge(std::size_t bytes);
/// The same in pages of the usual size, for memory of which only a little may ever be touched.
[[nodiscard]] Buffer allocate_small(std::size_t bytes);

}  // namespace fixpoint::kernels::cpu
