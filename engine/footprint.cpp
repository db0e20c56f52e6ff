#include "engine/footprint.h"

#include <cmath>

namespace fixpoint::engine {

std::int64_t kv_bytes_per_token(const ModelConfig& config, KvType type) {
  return 2 * config.num_layers * config.num_kv_heads * kernels::kv_row_bytes(type, config.head_dim);
}

std::int64_t users_that_fit(const ModelConfig& config, KvType type, std::int64_t tokens, double memory_bytes,
                            double weight_bytes, std::int32_t block_size) {
  const auto blocks = (tokens + block_size - 1) / block_size;
  const double user_bytes = static_cast<double>(blocks * block_size * kv_bytes_per_token(config, type));
  const double room = memory_bytes - weight_bytes;
  return room <= 0 ? 0 : static_cast<std::int64_t>(std::floor(room / user_bytes));
}

double full_contexts_per_gib(const ModelConfig& config, KvType type) {
  return 0x1p30 / static_cast<double>(config.context_length * kv_bytes_per_token(config, type));
}

Footprint footprint(const ModelFile& file) {
  Footprint result;
  const auto& config = file.config();
  for (const auto& [name, tensor] : file.tensors()) {
    const auto elements = tensor.shape.elements();
    const auto bytes = static_cast<double>(tensor.bytes());
    result.parameters += elements;
    result.weight_bytes += bytes;
    const bool embedding = name == "token_embd.weight";
    const bool output = name == "output.weight" || (embedding && config.tied_embeddings);
    if (output) {
      result.output_flops += 2.0 * static_cast<double>(elements);
    } else if (tensor.shape.rank() == 2 && !embedding) {
      result.layer_flops += 2.0 * static_cast<double>(elements);
    }
    if (!embedding || output) result.decode_weight_bytes += bytes;
  }
  // Scores and the weighted sum: two multiply-adds per head element and attended position.
  result.attention_flops_per_pair = 4.0 * static_cast<double>(config.num_layers * config.num_heads * config.head_dim);
  return result;
}

double prefill_flops_per_token(const Footprint& f, std::int64_t tokens) {
  const auto n = static_cast<double>(tokens);
  return f.layer_flops + f.attention_flops_per_pair * (n + 1) / 2 + f.output_flops / n;
}

double decode_flops_per_token(const Footprint& f, std::int64_t context) {
  return f.layer_flops + f.output_flops + f.attention_flops_per_pair * static_cast<double>(context);
}

}  // namespace fixpoint::engine
