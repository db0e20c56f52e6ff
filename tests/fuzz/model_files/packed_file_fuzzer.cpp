// A file of packed weights, and its directory alone, which a mutation would hardly reach behind its checksum.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "engine/detail/packed_file.h"

namespace {

using namespace fixpoint::engine::detail;

/// Every weight lies in `file`, where its kernels may read it: a wrong place is the sanitizer's to see.
void touch(const PackedDirectory& directory, std::span<const std::byte> file) {
  volatile unsigned sum = 0;
  for (const PackedEntry& entry : directory.entries) {
    if ((entry.bytes.data() - file.data()) % 64 != 0) std::abort();
    if (entry.bytes.empty()) continue;
    sum = sum + std::to_integer<unsigned>(entry.bytes.front()) + std::to_integer<unsigned>(entry.bytes.back());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of its own, so that a read past the end is seen.
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  if (const auto whole = parse_packed_file(bytes, "f")) touch(*whole, bytes);
  const std::vector<std::byte> weights(512);
  if (const auto directory = parse_packed_directory(bytes, weights, "f")) touch(*directory, weights);
  return 0;
}
