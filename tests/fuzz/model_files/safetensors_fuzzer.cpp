#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/detail/hf_names.h"
#include "engine/detail/model_tensors.h"
#include "engine/detail/safetensors.h"

namespace {

using namespace fixpoint;
using namespace fixpoint::engine::detail;

/// The shapes of corpus/safetensors/whole_model.safetensors.
engine::ModelConfig small_config() {
  engine::ModelConfig config;
  config.hidden = config.ffn = 4;
  config.num_layers = config.num_kv_heads = 1;
  config.num_heads = 2;
  config.head_dim = config.rotary_dim = 2;
  config.context_length = 8;
  return config;
}

/// The first and the last byte of every tensor: a wrong place is the sanitizer's to see.
unsigned touch(const kernels::Tensor& tensor) {
  return std::to_integer<unsigned>(tensor.data[0]) + std::to_integer<unsigned>(tensor.data[tensor.bytes() - 1]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  const auto tensors = parse_safetensors(bytes, "f");
  if (!tensors) return 0;
  volatile unsigned sum = 0;
  for (const Tying tying : {Tying::tied, Tying::untied}) {
    std::vector<FoundTensor> found;
    for (const auto& t : *tensors) {
      const auto tensor = kernels::Tensor::of(bytes.data() + t.offset, t.dtype, t.shape);
      sum = sum + touch(tensor) + static_cast<unsigned>(to_hf_name(t.name).size());
      found.push_back({to_gguf_name(t.name), t.name, "f", tensor});
    }
    auto config = small_config();
    const auto bound = bind_tensors(std::move(found), {.file = "f", .tying = tying, .name_in_file = to_hf_name}, config);
    if (!bound) continue;
    for (const auto& t : bound->tensors) sum = sum + touch(t.tensor);
  }
  return 0;
}
