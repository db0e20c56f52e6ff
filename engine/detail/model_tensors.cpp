#include "engine/detail/model_tensors.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/detail/fail.h"
#include "kernels/quant.h"

namespace fixpoint::engine::detail {
namespace {

using Kind = LoadError::Kind;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;

/// Values of an F16 or BF16 vector; null for the block types.
std::unique_ptr<float[]> to_floats(const Tensor& tensor) {
  if (tensor.dtype != DType::f16 && tensor.dtype != DType::bf16) return nullptr;
  const auto n = tensor.shape.elements();
  auto out = std::make_unique<float[]>(static_cast<std::size_t>(n));
  kernels::dequantize_row(tensor.dtype, tensor.data, out.get(), n);
  return out;
}

class Binder {
 public:
  Binder(std::vector<FoundTensor> found, const TensorSource& source, ModelConfig& config) : source_(source), c_(config) {
    for (auto& t : found) {
      auto key = t.name;
      found_.emplace(std::move(key), std::move(t));
    }
  }

  tl::expected<BoundTensors, LoadError> bind() {
    bind_embeddings(source_.tying);
    if (c_.arch == Architecture::llama) c_.qkv_bias = found_.contains("blk.0.attn_q.bias");
    for (std::int64_t i = 0; i < c_.num_layers && !error_; ++i) bind_layer("blk." + std::to_string(i) + ".");
    bind_rope_divisors();
    refuse_leftovers();
    if (error_) return tl::unexpected(std::move(*error_));
    return std::move(out_);
  }

 private:
  void fail(Kind kind, std::string file, std::string where, std::string detail) {
    if (!error_) error_ = LoadError{kind, std::move(file), std::move(where), std::move(detail)};
  }

  std::optional<FoundTensor> take(const std::string& name) {
    auto node = found_.extract(name);
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }

  /// The tensor `name`, whose shape must be `shape`; vectors become F32.
  void need(const std::string& name, const Shape& shape) {
    if (error_) return;
    auto found = take(name);
    if (!found) {
      fail(Kind::missing, source_.file, "tensor '" + source_.name_in_file(name) + "'",
           "is missing; the architecture " + std::string(to_string(c_.arch)) + " needs it");
      return;
    }
    add(std::move(*found), shape);
  }

  void add(FoundTensor found, const Shape& shape) {
    if (!(found.tensor.shape == shape)) {
      fail(Kind::inconsistent, found.file, "tensor " + shown(found.name_in_file),
           "has the shape " + found.tensor.shape.to_string() + ", the hyperparameters say " + shape.to_string());
      return;
    }
    if (shape.rank() == 1 && found.tensor.dtype != DType::f32) {
      auto values = to_floats(found.tensor);
      if (values == nullptr) {
        fail(Kind::unsupported, found.file, "tensor " + shown(found.name_in_file),
             "a vector of type " + std::string(kernels::traits(found.tensor.dtype).name) + " is not supported");
        return;
      }
      found.tensor = Tensor::of(values.get(), DType::f32, shape);
      out_.converted.push_back(std::move(values));
    }
    out_.tensors.push_back({std::move(found.name), found.tensor});
  }

  void bind_embeddings(Tying tying) {
    const auto it = found_.find("token_embd.weight");
    if (it == found_.end()) {
      need("token_embd.weight", {});
      return;
    }
    c_.vocab_size = it->second.tensor.shape[0];
    need("token_embd.weight", {c_.vocab_size, c_.hidden});
    need("output_norm.weight", {c_.hidden});
    if (tying == Tying::tied) found_.erase("output.weight");
    c_.tied_embeddings = tying != Tying::untied && !found_.contains("output.weight");
    if (!c_.tied_embeddings) need("output.weight", {c_.vocab_size, c_.hidden});
  }

  void bind_layer(const std::string& layer) {
    const auto q = c_.num_heads * c_.head_dim;
    const auto kv = c_.num_kv_heads * c_.head_dim;
    need(layer + "attn_norm.weight", {c_.hidden});
    need(layer + "attn_q.weight", {q, c_.hidden});
    need(layer + "attn_k.weight", {kv, c_.hidden});
    need(layer + "attn_v.weight", {kv, c_.hidden});
    if (c_.qkv_bias) {
      need(layer + "attn_q.bias", {q});
      need(layer + "attn_k.bias", {kv});
      need(layer + "attn_v.bias", {kv});
    }
    if (c_.qk_norm) {
      need(layer + "attn_q_norm.weight", {c_.head_dim});
      need(layer + "attn_k_norm.weight", {c_.head_dim});
    }
    need(layer + "attn_output.weight", {c_.hidden, q});
    need(layer + "ffn_norm.weight", {c_.hidden});
    need(layer + "ffn_gate.weight", {c_.ffn, c_.hidden});
    need(layer + "ffn_up.weight", {c_.ffn, c_.hidden});
    need(layer + "ffn_down.weight", {c_.hidden, c_.ffn});
  }

  /// The divisors are read here, once: they become part of the configuration, not a tensor of the model.
  void bind_rope_divisors() {
    if (error_) return;
    auto found = take("rope_freqs.weight");
    if (!found) return;
    const auto where = "tensor " + shown(found->name_in_file);
    const Shape shape{c_.rotary_dim / 2};
    if (!(found->tensor.shape == shape) || found->tensor.dtype != DType::f32) {
      fail(Kind::inconsistent, found->file, where, "must be F32 " + shape.to_string());
      return;
    }
    c_.rope_divisors.resize(static_cast<std::size_t>(shape[0]));
    std::memcpy(c_.rope_divisors.data(), found->tensor.data, c_.rope_divisors.size() * sizeof(float));
    for (const float divisor : c_.rope_divisors) {
      if (!(divisor > 0) || !std::isfinite(divisor)) {
        fail(Kind::malformed, found->file, where, "holds a divisor that is not above 0");
        return;
      }
    }
  }

  /// A weight that nothing here computes with would make the results quietly wrong.
  void refuse_leftovers() {
    for (const auto& [name, tensor] : found_) {
      // Tables of rotation frequencies, which follow from the hyperparameters.
      if (name.ends_with("attn_rot_embd.weight") || name.ends_with("rotary_emb.inv_freq")) continue;
      fail(Kind::unsupported, tensor.file, "tensor " + shown(tensor.name_in_file),
           "is not part of the architecture " + std::string(to_string(c_.arch)) + " with " +
               std::to_string(c_.num_layers) + " layers");
      return;
    }
  }

  const TensorSource& source_;
  ModelConfig& c_;
  std::unordered_map<std::string, FoundTensor> found_;
  BoundTensors out_;
  std::optional<LoadError> error_;
};

}  // namespace

tl::expected<BoundTensors, LoadError> bind_tensors(std::vector<FoundTensor> found, const TensorSource& source,
                                                   ModelConfig& config) {
  return Binder(std::move(found), source, config).bind();
}

}  // namespace fixpoint::engine::detail
