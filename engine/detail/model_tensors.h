#pragma once

#include <cstddef>
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

/// Whether `output.weight` may be absent (then the embedding is the output projection), and must be.
enum class Tying { by_presence, tied, untied };

/// Matches what the file holds with what the architecture needs: every tensor present, each of the right shape, none left
/// over that would have to be computed with. Fills in what only tensors tell: vocab_size, tied_embeddings, qkv_bias,
/// rope_divisors. `file` stands in messages about what is missing.
[[nodiscard]] tl::expected<BoundTensors, LoadError> bind_tensors(std::vector<FoundTensor> found, Tying tying,
                                                                 const std::string& file, ModelConfig& config);

}  // namespace fixpoint::engine::detail
