#pragma once

#include "kernels/cpu/huge_pages.h"

namespace fixpoint::kernels::cpu {

/// Memory of one operation, kept for the next: grows and never shrinks. The contents are lost when it grows.
class Scratch {
 public:
  [[nodiscard]] std::byte* at_least(std::int64_t bytes) {
    const auto wanted = static_cast<std::size_t>(bytes);
    if (wanted > buffer_.bytes()) {
      buffer_ = Buffer();
      buffer_ = allocate_huge(wanted + wanted / 4);
    }
    return buffer_.data();
  }

 private:
  Buffer buffer_;
};

}  // namespace fixpoint::kernels::cpu
