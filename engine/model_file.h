#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/load_error.h"
#include "engine/model_config.h"
#include "engine/tokenizer_spec.h"
#include "kernels/tensor.h"

namespace fixpoint::engine {

/// A tensor of a model file, under its GGUF name ("blk.0.attn_q.weight"), as a view of the mapped file.
struct NamedTensor {
  std::string name;
  kernels::Tensor tensor;
};

/// What to do with a file whose only flaw is a tokenizer that is not supported.
enum class UnsupportedTokenizer : std::uint8_t { refuse, leave_out };

/// A model as files hold it: a GGUF file, or a directory with config.json, tokenizer.json and safetensors (sharded or
/// not). Opening maps the files and checks everything that can be checked without reading weights: sizes, offsets,
/// overlaps, the presence and shape of every tensor the architecture needs, the vocabulary against the embedding.
class ModelFile {
 public:
  [[nodiscard]] static tl::expected<ModelFile, LoadError> open(const std::filesystem::path& path,
                                                               UnsupportedTokenizer policy = UnsupportedTokenizer::refuse);

  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;
  ~ModelFile();

  [[nodiscard]] const ModelConfig& config() const;
  [[nodiscard]] const TokenizerSpec& tokenizer() const;
  /// Why `tokenizer` is empty, where it was left out.
  [[nodiscard]] const std::optional<LoadError>& tokenizer_error() const;
  /// The file's own chat template (Jinja text), if it has one.
  [[nodiscard]] const std::optional<std::string>& chat_template() const;
  /// TokenizerFile::program_start_given
  [[nodiscard]] bool program_start_given() const;
  /// Every tensor the model uses, in the order it uses them, under GGUF names (safetensors names are translated). Vectors
  /// (norms, biases) are F32, converted where the file holds them shorter. rope_freqs is in config().rope_divisors instead.
  [[nodiscard]] const std::vector<NamedTensor>& tensors() const;
  /// nullptr when the file has no such tensor.
  [[nodiscard]] const kernels::Tensor* find(std::string_view name) const;
  [[nodiscard]] std::int64_t file_bytes() const;
  /// Where it was opened from.
  [[nodiscard]] const std::filesystem::path& path() const;
  /// Differs where another file's weights, or this one's after a change, may differ: made of the files' sizes and times of
  /// change, and of every tensor's name, type, shape and a few of its bytes. It reads three pages or so of each tensor.
  [[nodiscard]] std::uint64_t fingerprint() const;
  /// The tensor's bytes need not stay in memory; a later look reads them from the file again.
  void let_go(const kernels::Tensor& tensor) const;
  /// "GGUF v3" or "safetensors, 2 shards".
  [[nodiscard]] std::string format() const;

 private:
  struct Impl;
  explicit ModelFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::engine
