#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "tests/engine/models/random_model.h"

namespace fixpoint::test_models {

/// One tensor of a random model: F32 values in the Hugging Face layout (q and k pairs half a head apart).
struct RandomTensor {
  std::string name;     ///< GGUF
  std::string hf_name;
  kernels::DType type;  ///< to be written as
  std::int64_t rows;    ///< 0: a vector
  std::int64_t cols;
  std::vector<float> values;
};

[[nodiscard]] std::vector<RandomTensor> random_tensors(const RandomModelSpec& spec);

/// Rows of a q or k matrix (or bias: cols = 1) in the order of a GGUF file of architecture llama: pairs become neighbours.
void to_adjacent_pairs(std::vector<float>& values, std::int64_t cols, std::int64_t head_dim, std::int64_t rotary_dim);

}  // namespace fixpoint::test_models
