#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/detail/mapped_file.h"
#include "engine/load_error.h"
#include "engine/model_config.h"
#include "engine/model_file.h"
#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// Everything that a loader of one file format gives. The tensors point into `files` and `converted`.
struct ModelParts {
  std::vector<MappedFile> files;
  std::vector<std::unique_ptr<float[]>> converted;
  ModelConfig config;
  TokenizerSpec tokenizer;
  std::optional<std::string> chat_template;
  std::vector<NamedTensor> tensors;
  std::string format;
};

[[nodiscard]] tl::expected<ModelParts, LoadError> load_gguf_model(const std::filesystem::path& path);
/// A directory with config.json, tokenizer.json and safetensors, as published on Hugging Face.
[[nodiscard]] tl::expected<ModelParts, LoadError> load_hf_model(const std::filesystem::path& directory);

}  // namespace fixpoint::engine::detail
