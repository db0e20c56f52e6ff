#include "tests/oracle/golden_models.h"

#include <algorithm>
#include <cctype>

namespace fixpoint::oracle {
namespace {

using engine::Architecture;
using engine::RopeScaling;
using kernels::DType;
using test_models::RandomModelSpec;

/// Rows of 256, so that every block type applies.
RandomModelSpec wide(Architecture arch, DType type) {
  return {.arch = arch, .hidden = 256, .num_heads = 8, .num_kv_heads = 2, .head_dim = 32, .ffn = 512, .vocab = 352,
          .tied = arch != Architecture::llama, .type = type};
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

std::vector<GoldenModel> golden_models() {
  std::vector<GoldenModel> out;
  for (const auto type : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,
                          DType::q4_k, DType::q5_k, DType::q6_k}) {
    out.push_back({"type-" + lower(std::string(kernels::traits(type).name)), wide(Architecture::llama, type)});
  }
  out.push_back({"qwen2-q4_k", wide(Architecture::qwen2, DType::q4_k)});
  out.push_back({"qwen3-q8_0", wide(Architecture::qwen3, DType::q8_0)});
  auto mixed = wide(Architecture::qwen2, DType::q4_k);
  mixed.embedding_type = DType::q6_k;
  mixed.down_type = DType::q5_0;
  out.push_back({"mixed-q4_k-q6_k-q5_0", mixed});
  // F32, small: what differs is the architecture and the rotation.
  out.push_back({"llama", {.arch = Architecture::llama}});
  out.push_back({"llama-untied-bias", {.arch = Architecture::llama, .tied = false, .qkv_bias = true, .seed = 2}});
  out.push_back({"llama-multi-query", {.arch = Architecture::llama, .num_heads = 6, .num_kv_heads = 1, .head_dim = 32}});
  out.push_back({"qwen2", {.arch = Architecture::qwen2, .rope_theta = 1e6F}});
  out.push_back({"qwen3-wide-heads", {.arch = Architecture::qwen3, .head_dim = 32, .rope_theta = 1e6F}});
  out.push_back({"qwen3-padded", {.arch = Architecture::qwen3, .vocab = 400, .vocab_padding = 16, .tied = false}});
  out.push_back({"llama-part-rotated", {.arch = Architecture::llama, .rotary_dim = 8}});
  out.push_back({"qwen2-part-rotated", {.arch = Architecture::qwen2, .rotary_dim = 8}});
  const auto scaled = [](Architecture arch, RopeScaling::Kind kind) {
    return RandomModelSpec{.arch = arch, .head_dim = 32, .rope_scaling = {.kind = kind, .factor = 4.0F, .original_context = 64}};
  };
  out.push_back({"llama-rope-linear", scaled(Architecture::llama, RopeScaling::Kind::linear)});
  out.push_back({"llama-rope-llama3", scaled(Architecture::llama, RopeScaling::Kind::llama3)});
  out.push_back({"qwen2-rope-yarn", scaled(Architecture::qwen2, RopeScaling::Kind::yarn)});
  return out;
}

}  // namespace fixpoint::oracle
