#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/detail/json_document.h"
#include "engine/load_error.h"
#include "engine/model_config.h"

namespace fixpoint::engine::detail {

/// A Hugging Face config.json. What only the tensors tell is left for bind_tensors.
struct HfConfig {
  ModelConfig model;
  std::optional<std::int64_t> bos_token;
  std::vector<std::int64_t> eos_tokens;
};

[[nodiscard]] tl::expected<HfConfig, LoadError> read_hf_config(const Json& config, const std::string& file);

}  // namespace fixpoint::engine::detail
