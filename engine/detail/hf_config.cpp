#include "engine/detail/hf_config.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "engine/detail/config_limits.h"
#include "engine/detail/fail.h"
#include "engine/detail/json_fields.h"

namespace fixpoint::engine::detail {
namespace {

using Kind = LoadError::Kind;

constexpr std::int64_t kMostTokenId = std::int64_t{1} << 30;

struct KnownModel {
  std::string_view architecture;
  std::string_view model_type;
  Architecture arch;
};

constexpr std::array<KnownModel, 4> kKnownModels{{
    {"LlamaForCausalLM", "llama", Architecture::llama},
    {"MistralForCausalLM", "mistral", Architecture::llama},
    {"Qwen2ForCausalLM", "qwen2", Architecture::qwen2},
    {"Qwen3ForCausalLM", "qwen3", Architecture::qwen3},
}};

const KnownModel* find_model(JsonFields& fields) {
  const auto* list = fields.find("architectures");
  const auto type = fields.text("model_type");
  std::string name;
  if (list != nullptr && list->is_array() && !list->empty() && list->front().is_string()) {
    name = list->front().get<std::string>();
  }
  for (const auto& known : kKnownModels) {
    if (name.empty() ? type == known.model_type : name == known.architecture) return &known;
  }
  if (name.empty() && !type) {
    fields.fail(Kind::missing, "architectures", "is missing");
  } else {
    fields.fail(Kind::unsupported, name.empty() ? "model_type" : "architectures",
                shown(name.empty() ? *type : name) + " is not supported (Llama, Mistral, Qwen2 and Qwen3 for causal LM are)");
  }
  return nullptr;
}

void read_shape(JsonFields& fields, ModelConfig& c) {
  c.hidden = fields.required_integer("hidden_size", 1, kMostWidth);
  c.num_layers = fields.required_integer("num_hidden_layers", 1, kMostLayers);
  c.num_heads = fields.required_integer("num_attention_heads", 1, kMostWidth);
  c.num_kv_heads = fields.integer("num_key_value_heads", 1, kMostWidth).value_or(c.num_heads);
  c.head_dim = fields.integer("head_dim", 1, kMostWidth).value_or(std::max<std::int64_t>(c.hidden / c.num_heads, 1));
  c.rotary_dim = c.head_dim;
  c.ffn = fields.required_integer("intermediate_size", 1, kMostWidth);
  c.context_length = fields.required_integer("max_position_embeddings", 1, kMostContext);
  c.rms_eps = fields.real("rms_norm_eps").value_or(1e-6F);
}

void read_llama3(JsonFields& rope, RopeScaling& s) {
  s.kind = RopeScaling::Kind::llama3;
  s.low_freq_factor = rope.real("low_freq_factor").value_or(1.0F);
  s.high_freq_factor = rope.real("high_freq_factor").value_or(4.0F);
  s.original_context = rope.required_integer("original_max_position_embeddings", 1, kMostContext);
}

void read_yarn(JsonFields& rope, ModelConfig& c) {
  auto& s = c.rope_scaling;
  s.kind = RopeScaling::Kind::yarn;
  s.beta_fast = rope.real("beta_fast").value_or(32.0F);
  s.beta_slow = rope.real("beta_slow").value_or(1.0F);
  s.attn_factor = rope.real("attention_factor").value_or(0.0F);
  if (rope.real("mscale").value_or(0.0F) != 0.0F || rope.real("mscale_all_dim").value_or(0.0F) != 0.0F) {
    rope.fail(Kind::unsupported, "mscale", "YaRN with mscale is not supported");
  }
  s.original_context = rope.integer("original_max_position_embeddings", 1, kMostContext).value_or(c.context_length);
  // Qwen's files keep max_position_embeddings when scaling is switched on.
  const auto extended = static_cast<double>(s.original_context) * static_cast<double>(s.factor);
  if (extended > static_cast<double>(c.context_length) && extended <= static_cast<double>(kMostContext)) {
    c.context_length = static_cast<std::int64_t>(extended);
  }
}

/// `rope_scaling`, or `rope_parameters` as newer files call it (with the theta inside).
void read_rope(JsonFields& fields, const std::string& file, ModelConfig& c) {
  c.rope_pairing = kernels::RopePairing::half_split;  // these files never reorder q and k
  c.rope_theta = fields.real("rope_theta").value_or(10000.0F);
  if (fields.real("partial_rotary_factor").value_or(1.0F) != 1.0F) {
    fields.fail(Kind::unsupported, "partial_rotary_factor", "rotating a part of each head is not supported");
  }
  const char* name = fields.find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const auto* object = fields.find(name);
  if (object == nullptr) return;
  if (!object->is_object()) {
    fields.fail(Kind::malformed, name, "is no object");
    return;
  }
  JsonFields rope(*object, file, std::string(name) + ".");
  c.rope_theta = rope.real("rope_theta").value_or(c.rope_theta);
  const char* key = rope.find("rope_type") != nullptr ? "rope_type" : "type";
  const auto type = rope.text(key).value_or("default");
  auto& s = c.rope_scaling;
  if (type != "default") {
    if (rope.find("factor") == nullptr) rope.fail(Kind::missing, "factor", "is missing");
    s.factor = rope.real("factor").value_or(1.0F);
  }
  if (type == "linear") {
    s.kind = RopeScaling::Kind::linear;
  } else if (type == "llama3") {
    read_llama3(rope, s);
  } else if (type == "yarn") {
    read_yarn(rope, c);
  } else if (type != "default") {
    rope.fail(Kind::unsupported, key, "rope scaling " + shown(type) + " is not supported (linear, llama3 and yarn are)");
  }
  fields.adopt(rope);
}

/// Attention past a sliding window is not built: up to the window, it is the same as full attention.
void read_sliding_window(JsonFields& fields, bool mistral, ModelConfig& c) {
  const auto window = fields.integer("sliding_window", 1, kMostContext);
  if (!window || *window >= c.context_length) return;
  if (mistral) {
    c.context_length = *window;
  } else if (fields.boolean("use_sliding_window").value_or(false)) {
    fields.fail(Kind::unsupported, "use_sliding_window",
                "a window of " + std::to_string(*window) + " tokens in a context of " + std::to_string(c.context_length) +
                    " is not supported");
  }
}

void refuse_what_is_not_built(JsonFields& fields) {
  if (const auto act = fields.text("hidden_act"); act && *act != "silu") {
    fields.fail(Kind::unsupported, "hidden_act", "activation " + shown(*act) + " is not supported (silu is)");
  }
  if (const auto* quantised = fields.find("quantization_config")) {
    const auto method = quantised->is_object() ? quantised->value("quant_method", Json("?")) : Json("?");
    fields.fail(Kind::unsupported, "quantization_config",
                "weights quantised by " + shown(method.is_string() ? method.get<std::string>() : "?") + " are not supported");
  }
}

}  // namespace

tl::expected<HfConfig, LoadError> read_hf_config(const Json& config, const std::string& file) {
  JsonFields fields(config, file);
  HfConfig out;
  const auto* known = find_model(fields);
  if (known == nullptr) return tl::unexpected(*fields.error());
  auto& c = out.model;
  c.arch = known->arch;
  c.name = fields.text("_name_or_path").value_or("");
  refuse_what_is_not_built(fields);
  read_shape(fields, c);
  if (c.num_heads > c.hidden) fields.fail(Kind::inconsistent, "num_attention_heads", "more heads than hidden elements");
  read_rope(fields, file, c);
  read_sliding_window(fields, known->model_type == "mistral", c);
  c.qkv_bias = c.arch == Architecture::qwen2;
  c.qk_norm = c.arch == Architecture::qwen3;
  // Qwen3 and Llama tie only where the file says so; so did every release of Qwen2.
  c.tied_embeddings = fields.boolean("tie_word_embeddings").value_or(false);
  out.bos_token = fields.integer("bos_token_id", 0, kMostTokenId);
  out.eos_tokens = fields.integers("eos_token_id", 0, kMostTokenId);
  if (fields.error()) return tl::unexpected(*fields.error());
  if (auto error = check_config(c, file)) return tl::unexpected(*error);
  return out;
}

}  // namespace fixpoint::engine::detail
