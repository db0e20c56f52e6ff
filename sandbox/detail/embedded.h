#pragma once

#include <cstddef>
#include <span>

namespace fixpoint::sandbox::detail {

// Files that this library carries with it, so that none has to be found at run time.

[[nodiscard]] std::span<const std::byte> embedded_broker();
[[nodiscard]] std::span<const std::byte> embedded_zygote_library();
[[nodiscard]] std::span<const std::byte> embedded_zygote_program();
[[nodiscard]] std::span<const std::byte> embedded_node_worker();

}  // namespace fixpoint::sandbox::detail
