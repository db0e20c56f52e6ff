#pragma once

#include <sys/types.h>

#include <cstddef>

namespace fixpoint::sandbox::detail {

/// write(2) to a pipe whose reader may be gone: EPIPE comes back as an error, and SIGPIPE reaches nobody, whatever the
/// process does with that signal.
[[nodiscard]] ssize_t write_quietly(int fd, const void* data, std::size_t size);

}  // namespace fixpoint::sandbox::detail
