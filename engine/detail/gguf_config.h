#pragma once

#include <string>
#include <tl/expected.hpp>

#include "engine/detail/gguf.h"
#include "engine/load_error.h"
#include "engine/model_config.h"

namespace fixpoint::engine::detail {

/// Hyperparameters from a GGUF file's metadata. What only the tensors tell (vocab_size, tied_embeddings, qkv_bias of llama,
/// rope_divisors) is left for bind_tensors.
[[nodiscard]] tl::expected<ModelConfig, LoadError> read_gguf_config(const Gguf& gguf, const std::string& file);

}  // namespace fixpoint::engine::detail
