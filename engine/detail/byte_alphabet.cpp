#include "engine/detail/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "engine/utf8.h"

namespace fixpoint::engine::detail {
namespace {

constexpr char32_t kEnd = 0x100 + 68;

constexpr bool prints_itself(std::uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// Code point -> byte, or -1.
constexpr std::array<std::int16_t, kEnd> make_bytes() {
  std::array<std::int16_t, kEnd> bytes{};
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 0x100; ++byte) {
    bytes[byte] = prints_itself(byte) ? static_cast<std::int16_t>(byte) : std::int16_t{-1};
  }
  for (std::uint32_t byte = 0; byte < 0x100; ++byte) {
    if (!prints_itself(byte)) {
      bytes[next++] = static_cast<std::int16_t>(byte);
    }
  }
  return bytes;
}

constexpr auto kByteOf = make_bytes();

}  // namespace

std::string bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  for (std::size_t pos = 0; pos < spelling.size();) {
    const Utf8Step step = utf8_step(spelling, pos);
    if (step.kind != Utf8Step::Kind::character || step.code >= kEnd || kByteOf[step.code] < 0) {
      return std::string(spelling);
    }
    bytes += static_cast<char>(kByteOf[step.code]);
    pos += step.length;
  }
  return bytes;
}

}  // namespace fixpoint::engine::detail
