#include "engine/detail/hf_names.h"

#include <array>
#include <string_view>
#include <utility>

namespace fixpoint::engine::detail {
namespace {

struct NamePair {
  std::string_view hf, gguf;
};

constexpr std::array<NamePair, 3> kWhole{{
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
}};

/// What follows "model.layers.N." and "blk.N.".
constexpr std::array<NamePair, 14> kInLayer{{
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.q_proj.bias", "attn_q.bias"},
    {"self_attn.k_proj.bias", "attn_k.bias"},
    {"self_attn.v_proj.bias", "attn_v.bias"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
}};

constexpr NamePair kLayerPrefix{"model.layers.", "blk."};

std::string translate(const std::string& name, std::string_view NamePair::*from, std::string_view NamePair::*to) {
  for (const auto& pair : kWhole) {
    if (name == pair.*from) return std::string(pair.*to);
  }
  const auto prefix = kLayerPrefix.*from;
  const auto dot = name.starts_with(prefix) ? name.find('.', prefix.size()) : std::string::npos;
  if (dot == std::string::npos) return name;
  const auto rest = std::string_view(name).substr(dot + 1);
  for (const auto& pair : kInLayer) {
    if (rest == pair.*from) {
      return std::string(kLayerPrefix.*to) + name.substr(prefix.size(), dot + 1 - prefix.size()) + std::string(pair.*to);
    }
  }
  return name;
}

}  // namespace

std::string to_gguf_name(const std::string& hf_name) { return translate(hf_name, &NamePair::hf, &NamePair::gguf); }

std::string to_hf_name(const std::string& gguf_name) { return translate(gguf_name, &NamePair::gguf, &NamePair::hf); }

}  // namespace fixpoint::engine::detail
