#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/chat_template.h"
#include "engine/engine.h"
#include "engine/footprint.h"
#include "engine/load_error.h"
#include "engine/model.h"
#include "engine/model_config.h"
#include "engine/weight_cache_report.h"
#include "kernels/cuda_backend.h"

namespace fixpoint::engine {

struct LanguageModelOptions {
  std::filesystem::path path;  ///< a GGUF file, or a folder with config.json, tokenizer.json and safetensors
  kernels::CpuOptions cpu;
  std::optional<kernels::CudaOptions> cuda;  ///< set: on this device instead of the processor
  double gpu_memory_share = 0.9;  ///< of the device's memory, all uses together; for keys and values where `engine` doesn't say
  EngineOptions engine;
  std::optional<ChatFormat> chat_format;  ///< unset: recognised from the file's own template
  std::optional<std::filesystem::path> weight_cache;  ///< see Model::LoadOptions
  Model::Progress progress;
};

/// A model that serves: its file, its tokenizer and chat format, and the engine that runs it. What the commands, the
/// agent and the service hold. Any thread may use it.
class LanguageModel {
 public:
  [[nodiscard]] static tl::expected<std::unique_ptr<LanguageModel>, LoadError> load(const LanguageModelOptions& options);

  [[nodiscard]] Engine& engine() { return *engine_; }
  [[nodiscard]] const Engine& engine() const { return *engine_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return engine_->tokenizer(); }
  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const Footprint& footprint() const { return footprint_; }
  /// The type most of the weights' bytes are in.
  [[nodiscard]] kernels::DType main_dtype() const { return main_dtype_; }
  /// "qwen2.5-coder-0.5b (qwen2, 494 M parameters, Q4_0)"
  [[nodiscard]] std::string description() const;
  [[nodiscard]] const std::string& backend_name() const { return backend_name_; }
  /// Unset where no cache was asked for, or the backend packs nothing.
  [[nodiscard]] const std::optional<WeightCacheReport>& weight_cache() const { return weight_cache_; }

  /// Tokens of a plain prompt, BOS included where the model wants one.
  [[nodiscard]] std::vector<TokenId> plain_prompt(std::string_view text, Tokenizer::ControlTokens control) const;
  /// Tokens of a conversation. Error: the file's template is none that we know, or the roles do not fit it.
  [[nodiscard]] tl::expected<std::vector<TokenId>, std::string> chat_prompt(std::span<const Message> messages) const;
  /// Tokens that end an assistant's turn; empty where the chat format is not known.
  [[nodiscard]] std::vector<TokenId> chat_stop_tokens() const;
  /// Error: why there is none.
  [[nodiscard]] const tl::expected<ChatFormat, std::string>& chat_format() const { return chat_format_; }
  /// Its answers are to be given the first words of a program (TokenizerFile::program_start_given).
  [[nodiscard]] bool program_start_given() const { return program_start_given_; }

 private:
  LanguageModel() = default;

  ModelConfig config_;
  Footprint footprint_;
  kernels::DType main_dtype_ = kernels::DType::f32;
  std::string backend_name_;
  std::optional<WeightCacheReport> weight_cache_;
  tl::expected<ChatFormat, std::string> chat_format_;
  bool program_start_given_ = false;
  std::unique_ptr<Engine> engine_;
};

/// The type that holds most of a file's bytes.
[[nodiscard]] kernels::DType main_dtype(const ModelFile& file);

}  // namespace fixpoint::engine
