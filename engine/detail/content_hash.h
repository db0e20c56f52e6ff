#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace fixpoint::engine::detail {

/// FNV-1a of 64 bits, to see what differs by chance. It is no protection from somebody who means it.
class ContentHash {
 public:
  void add_bytes(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) value_ = (value_ ^ std::to_integer<std::uint64_t>(b)) * 0x100000001B3U;
  }
  void add_number(std::uint64_t number) { add_bytes(std::as_bytes(std::span(&number, 1))); }
  void add_text(std::string_view text) {
    add_number(text.size());
    add_bytes(std::as_bytes(std::span(text)));
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xCBF29CE484222325U;
};

}  // namespace fixpoint::engine::detail
