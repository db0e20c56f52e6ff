#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/load_error.h"
#include "engine/model_config.h"
#include "engine/model_file.h"
#include "kernels/tensor.h"

namespace fixpoint::engine::detail {

/// A tensor as found in a file.
struct FoundTensor {
  std::string name;            ///< GGUF's name for it
  std::string name_in_file;    ///< for messages
  std::string file;
  kernels::Tensor tensor;
};

/// The tensors that the model uses, in the order it uses them.
struct BoundTensors {
  std::vector<NamedTensor> tensors;
  std::vector<std::unique_ptr<float[]>> converted;  ///< vectors that were not F32 in the file
};

/// Whether the embedding is the output projection: where `output.weight` is absent, or as the configuration says.
enum class Tying : std::uint8_t { by_presence, tied, untied };

/// What binding must know of the file it binds.
struct TensorSource {
  std::string file;  ///< for messages about what is missing
  Tying tying = Tying::by_presence;
  std::string (*name_in_file)(const std::string& gguf_name) = [](const std::string& name) { return name; };
};

/// Matches what the file holds with what the architecture needs: every tensor present, each of the right shape, none left
/// over that would have to be computed with. Fills in what only tensors tell: vocab_size, tied_embeddings, qkv_bias of
/// llama, rope_divisors.
[[nodiscard]] tl::expected<BoundTensors, LoadError> bind_tensors(std::vector<FoundTensor> found, const TensorSource& source,
                                                                 ModelConfig& config);

}  // namespace fixpoint::engine::detail
