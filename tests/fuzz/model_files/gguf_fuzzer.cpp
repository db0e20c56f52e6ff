#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/detail/gguf.h"
#include "engine/detail/gguf_config.h"
#include "engine/detail/gguf_tokenizer.h"
#include "engine/detail/model_tensors.h"

namespace {

using namespace fixpoint;
using namespace fixpoint::engine::detail;

std::vector<FoundTensor> tensors_of(const Gguf& gguf, std::span<std::byte> bytes) {
  std::vector<FoundTensor> out;
  for (const auto& t : gguf.tensors) {
    out.push_back({std::string(t.name), std::string(t.name), "f", kernels::Tensor::of(bytes.data() + t.offset, t.dtype, t.shape)});
  }
  return out;
}

/// Reads the first and the last byte of every tensor: a wrong place is the sanitizer's to see.
unsigned touch(const std::vector<engine::NamedTensor>& tensors) {
  unsigned sum = 0;
  for (const auto& t : tensors) {
    sum += std::to_integer<unsigned>(t.tensor.data[0]) + std::to_integer<unsigned>(t.tensor.data[t.tensor.bytes() - 1]);
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of its own, so that a read past the end is seen.
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  const std::string name = "f";
  const auto gguf = parse_gguf(bytes, name);
  if (!gguf) return 0;
  static_cast<void>(read_gguf_tokenizer(*gguf, name));
  auto config = read_gguf_config(*gguf, name);
  if (!config) return 0;
  const auto bound = bind_tensors(tensors_of(*gguf, bytes), {.file = name}, *config);
  if (!bound) return 0;
  static_cast<void>(make_rope(*config));
  volatile unsigned sum = touch(bound->tensors);
  static_cast<void>(sum);
  return 0;
}
