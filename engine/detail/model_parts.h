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
#include "engine/tokenizer_file.h"
#include "engine/tokenizer_spec.h"

namespace fixpoint::engine::detail {

/// Everything that a loader of one file format gives. The tensors point into `files` and `converted`.
struct ModelParts {
  std::vector<MappedFile> files;
  std::vector<std::unique_ptr<float[]>> converted;
  ModelConfig config;
  TokenizerSpec tokenizer;
  std::optional<LoadError> tokenizer_error;  ///< why it is empty, where it was left out
  std::optional<std::string> chat_template;
  bool program_start_given = false;
  std::vector<NamedTensor> tensors;
  std::string format;
};

/// Moves what was read of the tokenizer into `parts`. Error: there is one, and `policy` does not let it be left out.
[[nodiscard]] std::optional<LoadError> take_tokenizer(tl::expected<TokenizerFile, LoadError> tokenizer, UnsupportedTokenizer policy,
                                                      ModelParts& parts);

[[nodiscard]] tl::expected<ModelParts, LoadError> load_gguf_model(const std::filesystem::path& path, UnsupportedTokenizer policy);
/// A directory with config.json, tokenizer.json and safetensors, as published on Hugging Face.
[[nodiscard]] tl::expected<ModelParts, LoadError> load_hf_model(const std::filesystem::path& directory, UnsupportedTokenizer policy);

}  // namespace fixpoint::engine::detail
