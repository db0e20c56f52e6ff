#pragma once

#include "sandbox/detail/step.h"

namespace fixpoint::sandbox::detail {

/// The kernel's Landlock version, 0 where it has none.
[[nodiscard]] int landlock_version();

/// From here on the calling thread reads and executes below "/", writes below `writable` only (and to the files of /dev),
/// makes no TCP connection (version 4) and reaches no abstract socket or process outside (version 6). Needs no_new_privs.
[[nodiscard]] Failure restrict_files(int version, const char* writable);

}  // namespace fixpoint::sandbox::detail
