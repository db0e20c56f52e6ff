#include "engine/detail/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "engine/detail/config_limits.h"
#include "engine/detail/fail.h"
#include "engine/detail/gguf_fields.h"

namespace fixpoint::engine::detail {
namespace {

using Kind = LoadError::Kind;

std::optional<Architecture> parse_architecture(std::string_view name) {
  for (const auto arch : {Architecture::llama, Architecture::qwen2, Architecture::qwen3}) {
    if (name == to_string(arch)) return arch;
  }
  return std::nullopt;
}

/// Keys are "<architecture>.<field>".
class ArchFields {
 public:
  ArchFields(GgufFields& fields, std::string_view arch) : fields_(fields), prefix_(std::string(arch) + ".") {}

  [[nodiscard]] std::string key(std::string_view field) const { return prefix_ + std::string(field); }
  [[nodiscard]] std::int64_t required(std::string_view field, std::int64_t low, std::int64_t high) {
    return fields_.required_integer(key(field), low, high);
  }
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view field, std::int64_t low, std::int64_t high) {
    return fields_.integer(key(field), low, high);
  }
  [[nodiscard]] std::optional<float> real(std::string_view field) { return fields_.real(key(field)); }

 private:
  GgufFields& fields_;
  std::string prefix_;
};

void read_attention(GgufFields& fields, ArchFields& arch, ModelConfig& c) {
  c.num_heads = arch.required("attention.head_count", 1, kMostWidth);
  c.num_kv_heads = arch.integer("attention.head_count_kv", 1, kMostWidth).value_or(c.num_heads);
  if (c.num_heads > c.hidden) {
    fields.fail(Kind::inconsistent, arch.key("attention.head_count"), "more heads than the embedding has elements");
  }
  c.head_dim = arch.integer("attention.key_length", 1, kMostWidth).value_or(std::max<std::int64_t>(c.hidden / c.num_heads, 1));
  const auto value_length = arch.integer("attention.value_length", 1, kMostWidth);
  if (value_length && *value_length != c.head_dim) {
    fields.fail(Kind::unsupported, arch.key("attention.value_length"),
                std::to_string(*value_length) + " differs from the key length " + std::to_string(c.head_dim));
  }
  c.rotary_dim = arch.integer("rope.dimension_count", 2, kMostWidth).value_or(c.head_dim);
}

void read_rope(GgufFields& fields, ArchFields& arch, ModelConfig& c) {
  // Files of this architecture hold q and k rows reordered so that pairs are neighbours.
  c.rope_pairing = c.arch == Architecture::llama ? kernels::RopePairing::adjacent : kernels::RopePairing::half_split;
  c.rope_theta = arch.real("rope.freq_base").value_or(10000.0F);
  auto& s = c.rope_scaling;
  s.factor = arch.real("rope.scaling.factor").value_or(1.0F);
  s.original_context = arch.integer("rope.scaling.original_context_length", 1, kMostContext).value_or(c.context_length);
  const auto type_key = arch.key("rope.scaling.type");
  const auto type = fields.text(type_key);
  if (!type) {
    // Older files only say by how much, and mean linear scaling.
    const auto factor = arch.real("rope.scale_linear");
    if (factor) s.factor = *factor;
    if (s.factor != 1.0F) s.kind = RopeScaling::Kind::linear;
    return;
  }
  if (*type == "none") return;
  if (*type == "linear") {
    s.kind = RopeScaling::Kind::linear;
  } else if (*type == "yarn") {
    s.kind = RopeScaling::Kind::yarn;
    s.beta_fast = arch.real("rope.scaling.yarn_beta_fast").value_or(32.0F);
    s.beta_slow = arch.real("rope.scaling.yarn_beta_slow").value_or(1.0F);
    // The file's factor multiplies YaRN's own magnitude.
    const auto attention = arch.real("rope.scaling.yarn_attn_factor").value_or(arch.real("rope.scaling.attn_factor").value_or(1.0F));
    if (attention != 1.0F && s.factor > 0) s.attn_factor = attention * (0.1F * std::log(s.factor) + 1.0F);
  } else {
    fields.fail(Kind::unsupported, type_key, "rope scaling " + shown(*type) + " is not supported (none, linear and yarn are)");
  }
}

}  // namespace

tl::expected<ModelConfig, LoadError> read_gguf_config(const Gguf& gguf, const std::string& file) {
  GgufFields fields(gguf, file);
  const auto name = fields.text("general.architecture");
  if (!name) {
    fields.fail(Kind::missing, "general.architecture", "is missing");
    return tl::unexpected(*fields.error());
  }
  const auto known = parse_architecture(*name);
  if (!known) {
    return fail(Kind::unsupported, file, "metadata 'general.architecture'",
                "architecture " + shown(*name) + " is not supported (llama, qwen2 and qwen3 are)");
  }
  ArchFields arch(fields, *name);
  ModelConfig c;
  c.arch = *known;
  c.name = fields.text("general.name").value_or("");
  if (fields.integer("split.count", 0, 1 << 16).value_or(1) > 1) {
    fields.fail(Kind::unsupported, "split.count", "the model is split over several GGUF files; merge them into one");
  }
  if (arch.integer("expert_count", 0, 1 << 16).value_or(0) > 0) {
    fields.fail(Kind::unsupported, arch.key("expert_count"), "mixture-of-experts models are not supported");
  }
  c.context_length = arch.required("context_length", 1, kMostContext);
  c.hidden = arch.required("embedding_length", 1, kMostWidth);
  c.num_layers = arch.required("block_count", 1, kMostLayers);
  c.ffn = arch.required("feed_forward_length", 1, kMostWidth);
  const auto eps_key = arch.key("attention.layer_norm_rms_epsilon");
  if (!fields.has(eps_key)) fields.fail(Kind::missing, eps_key, "is missing");
  c.rms_eps = fields.real(eps_key).value_or(0.0F);
  read_attention(fields, arch, c);
  read_rope(fields, arch, c);
  // Attention past a sliding window is not built: up to the window, it is the same as full attention.
  if (const auto window = arch.integer("attention.sliding_window", 0, kMostContext); window && *window > 0) {
    c.context_length = std::min(c.context_length, *window);
  }
  c.qkv_bias = c.arch == Architecture::qwen2;
  c.qk_norm = c.arch == Architecture::qwen3;
  if (fields.error()) return tl::unexpected(*fields.error());
  if (auto error = check_config(c, file)) return tl::unexpected(*error);
  return c;
}

}  // namespace fixpoint::engine::detail
