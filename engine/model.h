#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/model_file.h"
#include "engine/step_model.h"
#include "engine/weight_cache_report.h"
#include "kernels/backend.h"

namespace fixpoint::engine {
namespace detail {
class WeightCache;
}

/// A decoder-only transformer on a Backend: the forward pass, written once. Llama, Qwen2 and Qwen3 differ by what is
/// absent (biases, head norms), not by code. Not thread-safe: the engine thread owns it.
class Model final : public StepModel {
 public:
  using Progress = std::function<void(double fraction)>;

  struct LoadOptions {
    Progress progress;
    /// Folder of a file in which the packed weights are kept, for backends that pack them: written where there is none that
    /// fits, mapped and read in place where there is.
    std::optional<std::filesystem::path> weight_cache;
  };

  /// Takes the weights from `file`, which the model keeps: a backend may read them in place.
  [[nodiscard]] static tl::expected<std::unique_ptr<Model>, LoadError> load(ModelFile file,
                                                                            std::unique_ptr<kernels::Backend> backend,
                                                                            const LoadOptions& options = {});
  ~Model() override;

  [[nodiscard]] const ModelConfig& config() const { return file_.config(); }
  [[nodiscard]] const ModelFile& file() const { return file_; }
  [[nodiscard]] kernels::Backend& backend() { return *backend_; }
  /// How much of the device's memory is left for keys and values, when the process is to use `share` of it: what is free after
  /// the weights are loaded and the largest steps (a prompt of `tokens`; `sequences` decoded at full context) have run.
  /// Unset where the backend works on the host's memory. Before allocate_kv; forgets what that allocated.
  [[nodiscard]] std::optional<std::size_t> memory_for_kv(double share, std::int64_t tokens, std::int64_t sequences,
                                                         std::int32_t block_size, kernels::KvType type);
  /// Null where no cache was asked for, or the backend packs nothing.
  [[nodiscard]] const WeightCacheReport* weight_cache() const;
  /// Bytes of weights that one decode step reads.
  [[nodiscard]] std::int64_t weight_bytes_per_step() const;

  [[nodiscard]] std::int64_t vocab_size() const override { return config().vocab_size; }
  [[nodiscard]] std::int64_t context_length() const override { return config().context_length; }
  [[nodiscard]] std::size_t kv_bytes_per_block(std::int32_t block_size, kernels::KvType type) const override;
  [[nodiscard]] std::size_t mapped_weight_bytes() const override;
  void allocate_kv(std::int32_t num_blocks, std::int32_t block_size, kernels::KvType type) override;
  [[nodiscard]] bool chooses_tokens() const override { return backend_->chooses_tokens(); }
  [[nodiscard]] StepOutput forward(const StepInput& step) override;
  void copy_blocks(std::span<const kernels::BlockCopy> copies) override;
  [[nodiscard]] int num_threads() const override { return backend_->num_threads(); }
  void share(std::int64_t tasks, const std::function<void(std::int64_t task, int thread)>& body) override { backend_->share(tasks, body); }
  [[nodiscard]] kernels::OpCounters counters() const override { return backend_->counters(); }

 private:
  // D hidden, H heads, K kv heads, d head_dim, F ffn, V vocabulary.
  struct Layer {
    kernels::Buffer attn_norm;                      ///< [D]
    std::unique_ptr<kernels::Weight> qkv;           ///< [(H + 2 K) d, D]
    std::optional<kernels::Buffer> qkv_bias;        ///< [(H + 2 K) d]
    std::optional<kernels::Buffer> q_norm, k_norm;  ///< [d]
    std::unique_ptr<kernels::Weight> attn_out;      ///< [D, H d]
    kernels::Buffer ffn_norm;                       ///< [D]
    std::unique_ptr<kernels::Weight> gate_up;       ///< [2 F, D]
    std::unique_ptr<kernels::Weight> ffn_down;      ///< [D, F]
    kernels::KvLayer kv;
  };

  /// One step's activations; grown to the largest step seen. T tokens, R rows whose logits are wanted.
  struct Scratch {
    std::int64_t tokens = 0;
    std::int64_t logit_rows = 0;
    kernels::Buffer residual;  ///< [T, D]
    kernels::Buffer normed;    ///< [T, D]
    kernels::Buffer delta;     ///< [T, D]
    kernels::Buffer qkv;       ///< [T, (H + 2 K) d]
    kernels::Buffer attn;      ///< [T, H d]
    kernels::Buffer gate_up;   ///< [T, 2 F]
    kernels::Buffer act;       ///< [T, F]
    kernels::Buffer picked_residual, picked_attn;  ///< [R, D], [R, H d]
    kernels::Buffer logits;    ///< [R, V]
    kernels::Buffer host_logits;  ///< the same on the host
    kernels::Buffer host_chosen;  ///< [R] tokens
  };

  Model(ModelFile file, std::unique_ptr<kernels::Backend> backend);
  void open_cache(const std::filesystem::path& folder);
  void load_weights(const Progress& progress);
  [[nodiscard]] const kernels::Tensor& tensor(const std::string& name) const;
  [[nodiscard]] kernels::Buffer load_vector(std::span<const kernels::Tensor> parts);
  [[nodiscard]] std::unique_ptr<kernels::Weight> load_matrix(std::initializer_list<std::string> names);
  void load_layer(std::int64_t index);
  [[nodiscard]] kernels::KvShape kv_shape(std::int32_t num_blocks, std::int32_t block_size, kernels::KvType type) const;
  void reserve(std::int64_t tokens, std::int64_t logit_rows);
  void compute(const StepInput& step);
  [[nodiscard]] std::span<const std::int32_t> choose(const StepInput& step);
  [[nodiscard]] std::span<const float> download_logits(std::int64_t rows, std::span<const kernels::RowChoice> without);
  void attend(Layer& layer, const StepInput& step);
  void feed_forward(Layer& layer, const kernels::Tensor& normed, const kernels::Tensor& delta);

  ModelFile file_;
  std::unique_ptr<detail::WeightCache> cache_;  ///< before the weights, which may lie in it
  std::unique_ptr<kernels::Backend> backend_;
  kernels::Rope rope_;
  std::unique_ptr<kernels::Weight> embedding_;  ///< [V, D]
  std::unique_ptr<kernels::Weight> output_;     ///< [V, D]; null when tied
  kernels::Buffer output_norm_;                 ///< [D]
  std::vector<Layer> layers_;
  Scratch scratch_;
};

}  // namespace fixpoint::engine
