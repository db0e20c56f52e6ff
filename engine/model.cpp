#include "engine/model.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "engine/detail/weight_cache.h"
#include "kernels/quant.h"

namespace fixpoint::engine {

using kernels::DType;
using kernels::Shape;
using kernels::Tensor;

Model::Model(ModelFile file, std::unique_ptr<kernels::Backend> backend)
    : file_(std::move(file)), backend_(std::move(backend)), rope_(make_rope(file_.config())) {}

tl::expected<std::unique_ptr<Model>, LoadError> Model::load(ModelFile file, std::unique_ptr<kernels::Backend> backend,
                                                            const LoadOptions& options) {
  // ModelFile::open has checked that every tensor is there and has its shape.
  std::unique_ptr<Model> model(new Model(std::move(file), std::move(backend)));
  if (options.weight_cache) model->open_cache(*options.weight_cache);
  model->load_weights(options.progress);
  if (model->cache_) model->cache_->finish();
  return model;
}

Model::~Model() = default;

void Model::open_cache(const std::filesystem::path& folder) {
  const std::string form = backend_->packed_form();
  if (form.empty()) return;
  cache_ = std::make_unique<detail::WeightCache>(detail::packed_file_in(folder, file_, form), detail::PackedKey{form, file_.fingerprint()});
}

const WeightCacheReport* Model::weight_cache() const { return cache_ ? &cache_->report() : nullptr; }

const Tensor& Model::tensor(const std::string& name) const {
  const auto* found = file_.find(name);
  if (found == nullptr) throw std::logic_error("model file was opened without tensor '" + name + "'");
  return *found;
}

kernels::Buffer Model::load_vector(std::span<const Tensor> parts) {
  std::vector<float> values;
  for (const auto& part : parts) {
    const auto n = part.shape.elements();
    values.resize(values.size() + static_cast<std::size_t>(n));
    kernels::dequantize_row(part.dtype, part.data, values.data() + values.size() - n, n);
  }
  const Shape shape{static_cast<std::int64_t>(values.size())};
  auto buffer = backend_->allocate(values.size() * sizeof(float));
  backend_->upload(Tensor::of(values.data(), DType::f32, shape), buffer.view(DType::f32, shape));
  return buffer;
}

std::unique_ptr<kernels::Weight> Model::load_matrix(std::initializer_list<std::string> names) {
  std::vector<Tensor> parts;
  for (const auto& name : names) parts.push_back(tensor(name));
  auto weight = cache_ ? cache_->load(*backend_, *names.begin(), parts) : backend_->load_weight(parts);
  for (const Tensor& part : parts) file_.let_go(part);  // else a model would take its size twice while it loads
  return weight;
}

void Model::load_layer(std::int64_t index) {
  const auto blk = "blk." + std::to_string(index) + ".";
  auto& layer = layers_.emplace_back();
  const auto vector = [&](const std::string& name) { return load_vector(std::vector{tensor(blk + name)}); };
  layer.attn_norm = vector("attn_norm.weight");
  layer.ffn_norm = vector("ffn_norm.weight");
  if (config().qk_norm) {
    layer.q_norm = vector("attn_q_norm.weight");
    layer.k_norm = vector("attn_k_norm.weight");
  }
  if (config().qkv_bias) {
    layer.qkv_bias =
        load_vector(std::vector{tensor(blk + "attn_q.bias"), tensor(blk + "attn_k.bias"), tensor(blk + "attn_v.bias")});
  }
  layer.qkv = load_matrix({blk + "attn_q.weight", blk + "attn_k.weight", blk + "attn_v.weight"});
  layer.attn_out = load_matrix({blk + "attn_output.weight"});
  layer.gate_up = load_matrix({blk + "ffn_gate.weight", blk + "ffn_up.weight"});
  layer.ffn_down = load_matrix({blk + "ffn_down.weight"});
}

void Model::load_weights(const Progress& progress) {
  const auto report = [&](std::int64_t layers_done) {
    if (progress) progress(static_cast<double>(layers_done + 1) / static_cast<double>(config().num_layers + 1));
  };
  embedding_ = load_matrix({"token_embd.weight"});
  if (!config().tied_embeddings) output_ = load_matrix({"output.weight"});
  output_norm_ = load_vector(std::vector{tensor("output_norm.weight")});
  report(0);
  layers_.reserve(static_cast<std::size_t>(config().num_layers));
  for (std::int64_t i = 0; i < config().num_layers; ++i) {
    load_layer(i);
    report(i + 1);
  }
}

std::int64_t Model::weight_bytes_per_step() const {
  std::int64_t bytes = (output_ ? *output_ : *embedding_).bytes();
  for (const auto& layer : layers_) {
    bytes += layer.qkv->bytes() + layer.attn_out->bytes() + layer.gate_up->bytes() + layer.ffn_down->bytes();
  }
  return bytes;
}

kernels::KvShape Model::kv_shape(std::int32_t num_blocks, std::int32_t block_size, kernels::KvType type) const {
  return {.num_blocks = num_blocks,
          .block_size = block_size,
          .num_kv_heads = static_cast<std::int32_t>(config().num_kv_heads),
          .head_dim = static_cast<std::int32_t>(config().head_dim),
          .type = type};
}

std::size_t Model::kv_bytes_per_block(std::int32_t block_size, kernels::KvType type) const {
  return layers_.size() * backend_->kv_bytes(kv_shape(1, block_size, type));
}

std::size_t Model::mapped_weight_bytes() const {
  return cache_ ? static_cast<std::size_t>(cache_->report().mapped_bytes) : 0;
}

void Model::allocate_kv(std::int32_t num_blocks, std::int32_t block_size, kernels::KvType type) {
  for (auto& layer : layers_) {
    layer.kv = {};
    layer.kv = backend_->allocate_kv(kv_shape(num_blocks, block_size, type));
  }
}

void Model::copy_blocks(std::span<const kernels::BlockCopy> copies) {
  if (copies.empty()) return;
  for (auto& layer : layers_) backend_->copy_blocks(layer.kv, copies);
}

void Model::reserve(std::int64_t tokens, std::int64_t logit_rows) {
  const auto& c = config();
  const auto floats = [&](std::int64_t rows, std::int64_t cols) {
    return backend_->allocate(static_cast<std::size_t>(rows * cols) * sizeof(float));
  };
  // The sizes last: where an allocation throws, the next step tries again.
  if (tokens > scratch_.tokens) {
    scratch_.residual = floats(tokens, c.hidden);
    scratch_.normed = floats(tokens, c.hidden);
    scratch_.delta = floats(tokens, c.hidden);
    scratch_.qkv = floats(tokens, (c.num_heads + 2 * c.num_kv_heads) * c.head_dim);
    scratch_.attn = floats(tokens, c.num_heads * c.head_dim);
    scratch_.gate_up = floats(tokens, 2 * c.ffn);
    scratch_.act = floats(tokens, c.ffn);
    scratch_.tokens = tokens;
  }
  if (logit_rows > scratch_.logit_rows) {
    scratch_.picked_residual = floats(logit_rows, c.hidden);
    scratch_.picked_attn = floats(logit_rows, c.num_heads * c.head_dim);
    scratch_.logits = floats(logit_rows, c.vocab_size);
    scratch_.host_logits = backend_->allocate_host(scratch_.logits.bytes());
    scratch_.host_chosen = backend_->allocate_host(static_cast<std::size_t>(logit_rows) * sizeof(std::int32_t));
    scratch_.logit_rows = logit_rows;
  }
}

/// normed [T, D] -> attn [T, H d]; this step's keys and values go into the blocks.
void Model::attend(Layer& layer, const StepInput& step) {
  const auto& c = config();
  const auto n = static_cast<std::int64_t>(step.tokens.size());
  const auto width = (c.num_heads + 2 * c.num_kv_heads) * c.head_dim;
  const auto fused = scratch_.qkv.view(DType::f32, {n, width});
  std::optional<Tensor> bias;
  if (layer.qkv_bias) bias = layer.qkv_bias->view(DType::f32, {width});
  backend_->matmul(scratch_.normed.view(DType::f32, {n, c.hidden}), *layer.qkv, bias ? &*bias : nullptr, fused);

  const auto slice = [&](std::int64_t first_head, std::int64_t heads) {
    auto* data = fused.data + first_head * c.head_dim * static_cast<std::int64_t>(sizeof(float));
    return Tensor{data, DType::f32, {n, heads, c.head_dim}, width};
  };
  const auto q = slice(0, c.num_heads);
  const auto k = slice(c.num_heads, c.num_kv_heads);
  const auto v = slice(c.num_heads + c.num_kv_heads, c.num_kv_heads);
  const auto norm_weight = [&](const kernels::Buffer& weight) { return weight.view(DType::f32, {c.head_dim}); };
  std::optional<kernels::HeadNorm> norm;
  if (layer.q_norm) norm = {norm_weight(*layer.q_norm), norm_weight(*layer.k_norm), c.rms_eps};
  backend_->rotate_and_store(q, k, v, norm ? &*norm : nullptr, rope_, step.batch, layer.kv);
  const float scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim));
  backend_->attention(q, layer.kv, step.batch, scale,
                      scratch_.attn.view(DType::f32, {n, c.num_heads, c.head_dim}));
}

/// normed [n, D] -> delta [n, D]
void Model::feed_forward(Layer& layer, const Tensor& normed, const Tensor& delta) {
  const auto n = normed.rows();
  const auto gate_up = scratch_.gate_up.view(DType::f32, {n, 2 * config().ffn});
  const auto act = scratch_.act.view(DType::f32, {n, config().ffn});
  backend_->matmul(normed, *layer.gate_up, nullptr, gate_up);
  backend_->swiglu(gate_up, act);
  backend_->matmul(act, *layer.ffn_down, nullptr, delta);
}

/// The step's operations, up to the logits in scratch_.
void Model::compute(const StepInput& step) {
  const auto& c = config();
  auto n = static_cast<std::int64_t>(step.tokens.size());
  const auto wanted = static_cast<std::int64_t>(step.logit_rows.size());
  const auto rows = [](const kernels::Buffer& buffer, std::int64_t count, std::int64_t cols) {
    return buffer.view(DType::f32, {count, cols});
  };
  const auto norm_weight = [&](const kernels::Buffer& weight) { return weight.view(DType::f32, {c.hidden}); };

  auto residual = rows(scratch_.residual, n, c.hidden);
  auto normed = rows(scratch_.normed, n, c.hidden);
  auto delta = rows(scratch_.delta, n, c.hidden);
  backend_->embed(*embedding_, step.tokens, residual);
  backend_->rms_norm(residual, norm_weight(layers_.front().attn_norm), c.rms_eps, normed);

  for (std::size_t i = 0; i < layers_.size(); ++i) {
    auto& layer = layers_[i];
    const bool last = i + 1 == layers_.size();
    attend(layer, step);
    auto attn = rows(scratch_.attn, n, c.num_heads * c.head_dim);
    if (last) {
      // Past the last attention only the rows that sample matter.
      if (wanted == 0) return;
      const auto picked_attn = rows(scratch_.picked_attn, wanted, c.num_heads * c.head_dim);
      const auto picked_residual = rows(scratch_.picked_residual, wanted, c.hidden);
      backend_->gather(attn, step.logit_rows, picked_attn);
      backend_->gather(residual, step.logit_rows, picked_residual);
      attn = picked_attn;
      residual = picked_residual;
      n = wanted;
      normed = rows(scratch_.normed, n, c.hidden);
      delta = rows(scratch_.delta, n, c.hidden);
    }
    backend_->matmul(attn, *layer.attn_out, nullptr, delta);
    backend_->add_rms_norm(residual, delta, norm_weight(layer.ffn_norm), c.rms_eps, normed);
    feed_forward(layer, normed, delta);
    const auto& next_norm = last ? output_norm_ : layers_[i + 1].attn_norm;
    backend_->add_rms_norm(residual, delta, norm_weight(next_norm), c.rms_eps, normed);
  }
  backend_->matmul(normed, output_ ? *output_ : *embedding_, nullptr, rows(scratch_.logits, wanted, c.vocab_size));
}

/// The backend's choices, once it is synchronised; none where it leaves them to the caller.
std::span<const std::int32_t> Model::choose(const StepInput& step) {
  if (step.choices.empty() || !chooses_tokens()) return {};
  if (step.choices.size() > step.logit_rows.size()) throw std::invalid_argument("forward: more choices than rows");
  const std::span chosen(reinterpret_cast<std::int32_t*>(scratch_.host_chosen.data()), step.choices.size());
  const Shape shape{static_cast<std::int64_t>(step.logit_rows.size()), config().vocab_size};
  backend_->choose(scratch_.logits.view(DType::f32, shape), step.choices, chosen);
  return chosen;
}

/// Queues the copies of the rows that are not those of `without`, one behind another on the host.
std::span<const float> Model::download_logits(std::int64_t rows, std::span<const kernels::RowChoice> without) {
  const Shape shape{rows, config().vocab_size};
  const Tensor from = scratch_.logits.view(DType::f32, shape);
  const Tensor to = scratch_.host_logits.view(DType::f32, shape);
  std::int64_t next = 0;
  std::int64_t copied = 0;
  const auto copy_up_to = [&](std::int64_t end) {
    if (end > next) {
      const Shape some{end - next, config().vocab_size};
      backend_->download(Tensor::of(from.row(next), DType::f32, some), Tensor::of(to.row(copied), DType::f32, some));
      copied += end - next;
    }
    next = end + 1;
  };
  for (const kernels::RowChoice& choice : without) copy_up_to(choice.row);
  copy_up_to(rows);
  return {to.row(0), static_cast<std::size_t>(copied * config().vocab_size)};
}

StepOutput Model::forward(const StepInput& step) {
  const auto wanted = static_cast<std::int64_t>(step.logit_rows.size());
  reserve(backend_->padded_rows(static_cast<std::int64_t>(step.tokens.size())), backend_->padded_rows(wanted));
  backend_->run_step({step.tokens, step.batch, step.logit_rows}, [&] { compute(step); });
  if (wanted == 0) return {};
  StepOutput output;
  output.chosen = choose(step);
  output.logits = download_logits(wanted, output.chosen.empty() ? std::span<const kernels::RowChoice>() : step.choices);
  backend_->synchronize();
  return output;
}

namespace {

/// A step for measuring: sequences of `context` tokens, the last `tokens` of each computed, all in the same few blocks; tokens are
/// chosen by the backend if it does.
struct MeasuredStep {
  std::vector<TokenId> tokens;
  std::vector<std::int32_t> q_indptr{0}, block_indptr{0}, block_ids, last_block_len, positions, rows;
  std::vector<kernels::RowChoice> choices;

  MeasuredStep(std::int64_t sequences, std::int64_t context, std::int64_t each, std::int32_t block_size, std::int32_t num_blocks) {
    const auto blocks = static_cast<std::int32_t>((context + block_size - 1) / block_size);
    for (std::int64_t s = 0; s < sequences; ++s) {
      for (std::int64_t p = context - each; p < context; ++p) positions.push_back(static_cast<std::int32_t>(p));
      for (std::int32_t b = 0; b < blocks; ++b) block_ids.push_back(b % num_blocks);
      q_indptr.push_back(static_cast<std::int32_t>(positions.size()));
      block_indptr.push_back(static_cast<std::int32_t>(block_ids.size()));
      last_block_len.push_back(static_cast<std::int32_t>(context) - (blocks - 1) * block_size);
      choices.push_back({.row = static_cast<std::int32_t>(rows.size()), .vocab_size = 1});
      rows.push_back(q_indptr.back() - 1);
    }
    tokens.assign(positions.size(), 0);
  }
  [[nodiscard]] StepInput input(std::int32_t block_size) const {
    return {tokens, {block_size, q_indptr, block_indptr, block_ids, last_block_len, positions}, rows, choices};
  }
};

}  // namespace

std::optional<std::size_t> Model::memory_for_kv(double share, std::int64_t tokens, std::int64_t sequences, std::int32_t block_size,
                                                kernels::KvType type) {
  if (!backend_->memory()) return std::nullopt;
  tokens = std::min(tokens, context_length());
  const auto num_blocks = static_cast<std::int32_t>((tokens + block_size - 1) / block_size);
  allocate_kv(num_blocks, block_size, type);
  static_cast<void>(forward(MeasuredStep(1, tokens, tokens, block_size, num_blocks).input(block_size)));
  // Twice, since a backend may record what comes again, and the recording takes memory, too.
  const MeasuredStep decode(sequences, context_length(), 1, block_size, num_blocks);
  for (int i = 0; i < 2; ++i) static_cast<void>(forward(decode.input(block_size)));
  for (auto& layer : layers_) layer.kv = {};
  const auto memory = backend_->memory();
  const auto allowed = static_cast<std::size_t>(share * static_cast<double>(memory->total));
  const std::size_t used = memory->total - memory->free;
  return allowed > used ? allowed - used : 0;
}

}  // namespace fixpoint::engine
