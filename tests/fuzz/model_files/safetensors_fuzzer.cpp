#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "engine/detail/hf_names.h"
#include "engine/detail/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fixpoint::engine::detail;
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  const auto tensors = parse_safetensors(bytes, "f");
  if (!tensors) return 0;
  volatile unsigned sum = 0;
  for (const auto& t : *tensors) {
    sum = sum + std::to_integer<unsigned>(bytes[t.offset]) + std::to_integer<unsigned>(bytes[t.offset + t.bytes - 1]) +
          static_cast<unsigned>(to_gguf_name(t.name).size() + to_hf_name(t.name).size());
  }
  return 0;
}
