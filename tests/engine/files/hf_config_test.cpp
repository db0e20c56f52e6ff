#include "engine/detail/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fixpoint::engine::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json llama() {
  return Json{{"architectures", {"LlamaForCausalLM"}}, {"hidden_size", 64},          {"num_hidden_layers", 2},
              {"num_attention_heads", 4},              {"num_key_value_heads", 2},   {"intermediate_size", 96},
              {"max_position_embeddings", 8192},       {"rms_norm_eps", 1e-5},       {"rope_theta", 500000.0},
              {"eos_token_id", {7, 8}},                {"bos_token_id", 1}};
}

HfConfig read(const Json& json) {
  auto config = read_hf_config(json, "config.json");
  if (!config) throw std::runtime_error(config.error().message());
  return std::move(*config);
}

std::string error_of(const Json& json) {
  const auto config = read_hf_config(json, "config.json");
  EXPECT_FALSE(config.has_value());
  return config ? "" : config.error().message();
}

Json with(Json json, const char* name, Json value) {
  json[name] = std::move(value);
  return json;
}

TEST(HfConfigTest, ReadsShapesAndDefaults) {
  const auto config = read(llama());
  EXPECT_EQ(config.model.arch, Architecture::llama);
  EXPECT_EQ(config.model.head_dim, 16);
  EXPECT_EQ(config.model.rotary_dim, 16);
  EXPECT_EQ(config.model.rope_theta, 500000.0F);
  EXPECT_EQ(config.model.rope_pairing, kernels::RopePairing::half_split);
  EXPECT_FALSE(config.model.tied_embeddings);
  EXPECT_THAT(config.eos_tokens, ElementsAre(7, 8));
  EXPECT_EQ(read(with(llama(), "head_dim", 32)).model.head_dim, 32);
  EXPECT_EQ(read(with(llama(), "head_dim", nullptr)).model.head_dim, 16);
  EXPECT_THAT(read(with(llama(), "eos_token_id", 9)).eos_tokens, ElementsAre(9));
}

TEST(HfConfigTest, KnowsArchitecturesByName) {
  EXPECT_EQ(read(with(llama(), "architectures", {"MistralForCausalLM"})).model.arch, Architecture::llama);
  EXPECT_TRUE(read(with(llama(), "architectures", {"Qwen2ForCausalLM"})).model.qkv_bias);
  EXPECT_TRUE(read(with(llama(), "architectures", {"Qwen3ForCausalLM"})).model.qk_norm);
  EXPECT_THAT(error_of(with(llama(), "architectures", {"GemmaForCausalLM"})), HasSubstr("'GemmaForCausalLM' is not supported"));
  auto by_type = with(llama(), "model_type", "qwen2");
  by_type.erase("architectures");
  EXPECT_EQ(read(by_type).model.arch, Architecture::qwen2);
}

TEST(HfConfigTest, ReadsEveryRopeScalingUnderBothOfItsNames) {
  for (const char* key : {"type", "rope_type"}) {
    const auto linear = read(with(llama(), "rope_scaling", {{key, "linear"}, {"factor", 4}})).model.rope_scaling;
    EXPECT_EQ(linear.kind, RopeScaling::Kind::linear);
    EXPECT_EQ(linear.factor, 4.0F);
    const auto llama3 = read(with(llama(), "rope_scaling",
                                  {{key, "llama3"}, {"factor", 8.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0},
                                   {"original_max_position_embeddings", 8192}}))
                            .model.rope_scaling;
    EXPECT_EQ(llama3.kind, RopeScaling::Kind::llama3);
    EXPECT_EQ(llama3.original_context, 8192);
    EXPECT_THAT(error_of(with(llama(), "rope_scaling", {{key, "longrope"}, {"factor", 4}})),
                HasSubstr("rope scaling 'longrope' is not supported"));
  }
  const auto yarn = read(with(llama(), "rope_scaling",
                              {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 8192}}));
  EXPECT_EQ(yarn.model.rope_scaling.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(yarn.model.context_length, 32768) << "the scaled context counts";
  const auto newer = read(with(llama(), "rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e6}}));
  EXPECT_EQ(newer.model.rope_scaling.kind, RopeScaling::Kind::none);
  EXPECT_EQ(newer.model.rope_theta, 1e6F);
  EXPECT_THAT(error_of(with(llama(), "rope_scaling", {{"type", "linear"}})), HasSubstr("'rope_scaling.factor': is missing"));
}

TEST(HfConfigTest, AWindowCountsOnlyWhereItIsUsed) {
  auto qwen = with(with(llama(), "architectures", {"Qwen2ForCausalLM"}), "sliding_window", 4096);
  EXPECT_EQ(read(qwen).model.context_length, 8192);
  EXPECT_EQ(read(with(qwen, "use_sliding_window", false)).model.context_length, 8192);
  EXPECT_THAT(error_of(with(qwen, "use_sliding_window", true)), HasSubstr("a window of 4096 tokens"));
  auto wide = with(with(qwen, "use_sliding_window", true), "sliding_window", 8192);
  EXPECT_EQ(read(wide).model.context_length, 8192);
  const auto mistral = with(with(llama(), "architectures", {"MistralForCausalLM"}), "model_type", "mistral");
  EXPECT_EQ(read(with(mistral, "sliding_window", 4096)).model.context_length, 4096);
  EXPECT_EQ(read(with(mistral, "sliding_window", nullptr)).model.context_length, 8192);
}

TEST(HfConfigTest, WrongFieldsAreErrorsThatNameThem) {
  EXPECT_THAT(error_of(with(llama(), "hidden_size", "64")), HasSubstr("config.json: field 'hidden_size': is no integer"));
  EXPECT_THAT(error_of(with(llama(), "hidden_size", -64)), HasSubstr("'hidden_size': -64 is outside"));
  EXPECT_THAT(error_of(with(llama(), "num_hidden_layers", 1ULL << 63)), HasSubstr("'num_hidden_layers'"));
  EXPECT_THAT(error_of(with(llama(), "num_key_value_heads", 3)), HasSubstr("4 heads cannot share 3"));
  EXPECT_THAT(error_of(with(llama(), "head_dim", 15)), HasSubstr("rotary dimension"));
  EXPECT_THAT(error_of(with(llama(), "rope_theta", 0)), HasSubstr("rope theta"));
  EXPECT_THAT(error_of(with(llama(), "hidden_act", "gelu")), HasSubstr("activation 'gelu' is not supported"));
  EXPECT_THAT(error_of(with(llama(), "quantization_config", {{"quant_method", "gptq"}})), HasSubstr("quantised by 'gptq'"));
  auto missing = llama();
  missing.erase("intermediate_size");
  EXPECT_THAT(error_of(missing), HasSubstr("'intermediate_size': is missing"));
}

}  // namespace
}  // namespace fixpoint::engine::detail
