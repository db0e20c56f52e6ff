#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/model_file.h"
#include "engine/tokenizer_file.h"
#include "kernels/quant.h"
#include "tests/engine/models/random_model.h"
#include "tests/engine/models/temporary_directory.h"

namespace fixpoint::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using kernels::DType;
using test_models::ModelFormat;
using test_models::RandomModelSpec;
using test_models::TemporaryDirectory;
using test_models::write_random_model;

std::vector<float> values_of(const kernels::Tensor& t) {
  std::vector<float> out(static_cast<std::size_t>(t.shape.elements()));
  kernels::dequantize_row(t.dtype, t.data, out.data(), t.shape.elements());
  return out;
}

class HfModelTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "model"; }

  ModelFile open(RandomModelSpec spec) {
    spec.format = ModelFormat::safetensors;
    std::filesystem::remove_all(path());
    write_random_model(path(), spec);
    return reopen();
  }
  ModelFile reopen() {
    auto file = ModelFile::open(path());
    if (!file) throw std::runtime_error(file.error().message());
    return std::move(*file);
  }
  std::string error() {
    const auto file = ModelFile::open(path());
    EXPECT_FALSE(file.has_value());
    return file ? "" : file.error().message();
  }
  [[nodiscard]] std::string read(const char* name) const {
    std::ifstream in(path() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const char* name, const std::string& text) const { std::ofstream(path() / name, std::ios::binary) << text; }
  void replace(const char* name, const std::string& from, const std::string& to) const {
    auto text = read(name);
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    write(name, text.replace(at, from.size(), to));
  }

  TemporaryDirectory directory_;
};

TEST_F(HfModelTest, HoldsTheSameTensorsAsTheGgufFileOfTheSameModel) {
  for (const auto arch : {Architecture::qwen2, Architecture::qwen3}) {
    const RandomModelSpec spec{.arch = arch, .head_dim = 24, .tied = false};
    const auto hf = open(spec);
    const auto gguf_path = directory_.path() / "same.gguf";
    write_random_model(gguf_path, spec);
    const auto gguf = ModelFile::open(gguf_path);
    ASSERT_TRUE(gguf) << gguf.error().message();
    ASSERT_EQ(hf.tensors().size(), gguf->tensors().size());
    for (std::size_t i = 0; i < hf.tensors().size(); ++i) {
      EXPECT_EQ(hf.tensors()[i].name, gguf->tensors()[i].name);
      EXPECT_EQ(values_of(hf.tensors()[i].tensor), values_of(gguf->tensors()[i].tensor)) << hf.tensors()[i].name;
    }
    EXPECT_EQ(hf.tokenizer().tokens, gguf->tokenizer().tokens);
    EXPECT_EQ(hf.tokenizer().types, gguf->tokenizer().types);
    EXPECT_EQ(hf.tokenizer().merges, gguf->tokenizer().merges);
    EXPECT_EQ(hf.tokenizer().pre, gguf->tokenizer().pre);
    EXPECT_EQ(hf.tokenizer().nfc, gguf->tokenizer().nfc);
    EXPECT_EQ(hf.chat_template(), gguf->chat_template());
  }
}

TEST_F(HfModelTest, LlamaRowsAreInHalfSplitOrderHereAndAdjacentInGguf) {
  const auto hf = open({.arch = Architecture::llama});
  const auto gguf_path = directory_.path() / "same.gguf";
  write_random_model(gguf_path, {.arch = Architecture::llama});
  const auto gguf = ModelFile::open(gguf_path);
  ASSERT_TRUE(gguf);
  EXPECT_EQ(hf.config().rope_pairing, kernels::RopePairing::half_split);
  EXPECT_EQ(gguf->config().rope_pairing, kernels::RopePairing::adjacent);
  const auto a = values_of(*hf.find("blk.0.attn_q.weight"));
  const auto b = values_of(*gguf->find("blk.0.attn_q.weight"));
  // Row 1 of a GGUF head of 16 is the partner of row 0: row 8 in the original order.
  EXPECT_TRUE(std::equal(a.begin() + 8 * 64, a.begin() + 9 * 64, b.begin() + 64));
  EXPECT_TRUE(std::equal(a.begin(), a.begin() + 64, b.begin()));
}

TEST_F(HfModelTest, VectorsBecomeF32AndMatricesStayAsTheyAre) {
  const auto file = open({.arch = Architecture::qwen2, .type = DType::bf16});
  EXPECT_EQ(file.find("blk.0.attn_q.weight")->dtype, DType::bf16);
  const auto* norm = file.find("blk.1.ffn_norm.weight");
  ASSERT_EQ(norm->dtype, DType::f32);
  for (const float v : values_of(*norm)) EXPECT_NEAR(v, 1.0F, 0.5F);
  EXPECT_EQ(file.find("blk.0.attn_k.bias")->dtype, DType::f32);
}

TEST_F(HfModelTest, ShardsAreReadTogether) {
  const auto one = open({.tied = false});
  const auto values = values_of(*one.find("output.weight"));
  EXPECT_EQ(one.format(), "safetensors");
  const auto three = open({.shards = 3, .tied = false});
  EXPECT_EQ(three.format(), "safetensors, 3 shards");
  EXPECT_EQ(values_of(*three.find("output.weight")), values);
  std::filesystem::remove(path() / "model-00002-of-00003.safetensors");
  EXPECT_THAT(error(), HasSubstr("model-00002-of-00003.safetensors: open: No such file"));
}

TEST_F(HfModelTest, AnIndexNamesNothingOutsideItsDirectory) {
  static_cast<void>(open({.shards = 2}));
  replace("model.safetensors.index.json", "model-00001-of-00002.safetensors", "../../etc/passwd");
  EXPECT_THAT(error(), HasSubstr("has no file name"));
}

TEST_F(HfModelTest, StopTokensComeFromEveryFileThatNamesThem) {
  static_cast<void>(open({}));
  write("generation_config.json", R"({"eos_token_id":[381, 300]})");
  EXPECT_THAT(reopen().tokenizer().stop_tokens, ElementsAre(383, 381, 300));
  EXPECT_EQ(reopen().tokenizer().eos, 383);
}

TEST_F(HfModelTest, ATemplateFileStandsAboveTheTokenizerConfig) {
  EXPECT_THAT(*open({}).chat_template(), HasSubstr("<|im_start|>"));
  write("chat_template.jinja", "{{ other }}");
  EXPECT_EQ(reopen().chat_template(), "{{ other }}");
  std::filesystem::remove(path() / "chat_template.jinja");
  write("tokenizer_config.json", R"({"chat_template":[{"name":"tool","template":"t"},{"name":"default","template":"d"}]})");
  EXPECT_EQ(reopen().chat_template(), "d");
}

TEST_F(HfModelTest, TheTokenizerConfigSaysWhetherProgramsAreStarted) {
  EXPECT_FALSE(open({}).program_start_given());
  write("tokenizer_config.json", R"({"fixpoint_program_start_given":true})");
  EXPECT_TRUE(reopen().program_start_given());
}

TEST_F(HfModelTest, RopeScalingOfBothFormatsGivesTheSameFrequencies) {
  for (const auto kind : {RopeScaling::Kind::linear, RopeScaling::Kind::llama3, RopeScaling::Kind::yarn}) {
    const RandomModelSpec spec{.rope_scaling = {.kind = kind, .factor = 4.0F, .original_context = 128}};
    const auto a = make_rope(open(spec).config());
    const auto gguf_path = directory_.path() / "same.gguf";
    write_random_model(gguf_path, spec);
    const auto gguf = ModelFile::open(gguf_path);
    ASSERT_TRUE(gguf);
    const auto b = make_rope(gguf->config());
    EXPECT_EQ(a.magnitude, b.magnitude);
    ASSERT_EQ(a.inv_freq.size(), b.inv_freq.size());
    for (std::size_t i = 0; i < a.inv_freq.size(); ++i) EXPECT_NEAR(a.inv_freq[i], b.inv_freq[i], 1e-6 * b.inv_freq[i]);
  }
}

TEST_F(HfModelTest, MissingFilesAndTensorsAreNamedAsTheDirectoryNamesThem) {
  static_cast<void>(open({.tied = true}));
  replace("config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  EXPECT_THAT(error(), HasSubstr("tensor 'lm_head.weight': is missing"));
  replace("config.json", "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
  replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  EXPECT_THAT(error(), HasSubstr("tensor 'model.layers.2.input_layernorm.weight': is missing"));
  replace("config.json", "\"num_hidden_layers\": 3", "\"num_hidden_layers\": 1");
  EXPECT_THAT(error(), HasSubstr("is not part of the architecture llama with 1 layers"));
  std::filesystem::remove(path() / "tokenizer.json");
  EXPECT_THAT(error(), HasSubstr("tokenizer.json: is missing from the directory"));
  std::filesystem::remove(path() / "config.json");
  EXPECT_THAT(error(), HasSubstr("config.json: is missing from the directory"));
}

TEST_F(HfModelTest, BrokenJsonIsAnErrorWithItsOffset) {
  static_cast<void>(open({}));
  write("config.json", "{\"architectures\": [,]}");
  EXPECT_THAT(error(), HasSubstr("config.json: offset 20: is no valid JSON"));
}

TEST_F(HfModelTest, TheTokenizerCanBeReadAlone) {
  const auto file = open({});
  for (const auto& p : {path(), path() / "tokenizer.json"}) {
    const auto alone = read_tokenizer(p);
    ASSERT_TRUE(alone) << alone.error().message();
    EXPECT_EQ(alone->spec.tokens, file.tokenizer().tokens);
    EXPECT_EQ(alone->spec.eos, 383);
  }
}

}  // namespace
}  // namespace fixpoint::engine
