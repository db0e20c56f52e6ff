#include "engine/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/tokenizer_file.h"
#include "kernels/quant.h"
#include "tests/engine/models/random_model.h"
#include "tests/engine/models/temporary_directory.h"

namespace fixpoint::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using kernels::DType;
using test_models::ModelTokenizer;
using test_models::RandomModelSpec;
using test_models::TemporaryDirectory;
using test_models::write_random_model;

class ModelFileTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "model.gguf"; }

  ModelFile open(const RandomModelSpec& spec) {
    write_random_model(path(), spec);
    auto file = ModelFile::open(path());
    if (!file) throw std::runtime_error(file.error().message());
    return std::move(*file);
  }

  LoadError error_of(const RandomModelSpec& spec) {
    write_random_model(path(), spec);
    const auto file = ModelFile::open(path());
    EXPECT_FALSE(file.has_value());
    return file ? LoadError{} : file.error();
  }

 private:
  TemporaryDirectory directory_;
};

TEST_F(ModelFileTest, ReadsHyperparametersOfEachArchitecture) {
  for (const auto arch : {Architecture::llama, Architecture::qwen2, Architecture::qwen3}) {
    const auto file = open({.arch = arch, .head_dim = 24, .tied = false});
    const auto& c = file.config();
    EXPECT_EQ(c.arch, arch);
    EXPECT_EQ(c.hidden, 64);
    EXPECT_EQ(c.num_layers, 2);
    EXPECT_EQ(c.num_heads, 4);
    EXPECT_EQ(c.num_kv_heads, 2);
    EXPECT_EQ(c.head_dim, 24);
    EXPECT_EQ(c.rotary_dim, 24);
    EXPECT_EQ(c.ffn, 96);
    EXPECT_EQ(c.vocab_size, 384);
    EXPECT_EQ(c.context_length, 512);
    EXPECT_FALSE(c.tied_embeddings);
    EXPECT_EQ(c.qkv_bias, arch == Architecture::qwen2);
    EXPECT_EQ(c.qk_norm, arch == Architecture::qwen3);
    EXPECT_EQ(c.rope_pairing == kernels::RopePairing::adjacent, arch == Architecture::llama);
    EXPECT_EQ(file.format(), "GGUF v3");
    EXPECT_EQ(static_cast<std::uintmax_t>(file.file_bytes()), std::filesystem::file_size(path()));
  }
}

TEST_F(ModelFileTest, FindsEveryTensorWithItsShape) {
  const auto file = open({.arch = Architecture::qwen3, .tied = true});
  EXPECT_EQ(file.tensors().size(), 2U + 2U * 11U);
  ASSERT_NE(file.find("blk.1.ffn_down.weight"), nullptr);
  EXPECT_EQ(file.find("blk.1.ffn_down.weight")->shape, (kernels::Shape{64, 96}));
  EXPECT_EQ(file.find("blk.1.attn_k_norm.weight")->shape, (kernels::Shape{16}));
  EXPECT_EQ(file.find("output.weight"), nullptr);
  EXPECT_TRUE(file.config().tied_embeddings);
}

TEST_F(ModelFileTest, MixedTypesAreReadAsTheyAre) {
  const auto file = open({.hidden = 256, .num_heads = 4, .num_kv_heads = 2, .head_dim = 64, .ffn = 288,
                          .type = DType::q4_k, .embedding_type = DType::q6_k, .down_type = DType::q5_0});
  EXPECT_EQ(file.find("blk.0.attn_q.weight")->dtype, DType::q4_k);
  EXPECT_EQ(file.find("token_embd.weight")->dtype, DType::q6_k);
  EXPECT_EQ(file.find("blk.0.ffn_down.weight")->dtype, DType::q5_0);
  EXPECT_EQ(file.find("blk.0.attn_norm.weight")->dtype, DType::f32);
}

TEST_F(ModelFileTest, LlamaWithBiasesHasThem) {
  const auto file = open({.arch = Architecture::llama, .qkv_bias = true});
  EXPECT_TRUE(file.config().qkv_bias);
  EXPECT_NE(file.find("blk.1.attn_v.bias"), nullptr);
}

TEST_F(ModelFileTest, RopeScalingComesFromMetadataAndDivisorsFromTheTensor) {
  const auto linear = open({.rope_scaling = {.kind = RopeScaling::Kind::linear, .factor = 4.0F}});
  EXPECT_EQ(linear.config().rope_scaling.kind, RopeScaling::Kind::linear);
  EXPECT_EQ(linear.config().rope_scaling.factor, 4.0F);

  const auto yarn = open({.rope_scaling = {.kind = RopeScaling::Kind::yarn, .factor = 2.0F, .original_context = 256}});
  EXPECT_EQ(yarn.config().rope_scaling.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(yarn.config().rope_scaling.original_context, 256);

  const RopeScaling scaling{.kind = RopeScaling::Kind::llama3, .factor = 8.0F, .original_context = 128};
  const auto llama3 = open({.rope_scaling = scaling});
  EXPECT_EQ(llama3.config().rope_divisors.size(), 8U);
  EXPECT_EQ(llama3.config().rope_scaling.kind, RopeScaling::Kind::none) << "the divisors already hold the scaling";
  EXPECT_EQ(llama3.find("rope_freqs.weight"), nullptr);
  // The same frequencies as the formula gives from hyperparameters.
  auto by_formula = llama3.config();
  by_formula.rope_divisors.clear();
  by_formula.rope_scaling = scaling;
  const auto a = make_rope(llama3.config()).inv_freq;
  const auto b = make_rope(by_formula).inv_freq;
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6 * b[i]);
  EXPECT_LT(a.back(), make_rope(open({}).config()).inv_freq.back() / 7.9F);
}

TEST_F(ModelFileTest, ReadsTheTokenizerAndTheChatTemplate) {
  const auto file = open({});
  const auto& t = file.tokenizer();
  EXPECT_EQ(t.kind, TokenizerSpec::Kind::byte_level_bpe);
  EXPECT_EQ(t.pre, PreTokenizer::qwen2);
  EXPECT_EQ(t.tokens.size(), 384U);
  EXPECT_EQ(t.types.back(), TokenType::control);
  EXPECT_EQ(t.merges.front(), (std::pair<std::string, std::string>{"Ġ", "Ġ"}));
  EXPECT_THAT(t.stop_tokens, ElementsAre(383, 381)) << "<|im_end|> is named by the file, <|endoftext|> is known";
  EXPECT_FALSE(t.add_bos);
  ASSERT_TRUE(file.chat_template());
  EXPECT_THAT(*file.chat_template(), HasSubstr("<|im_start|>"));
  EXPECT_FALSE(file.program_start_given());

  const auto spm = open({.tokenizer = ModelTokenizer::sentencepiece});
  EXPECT_EQ(spm.tokenizer().kind, TokenizerSpec::Kind::sentencepiece_bpe);
  EXPECT_EQ(spm.tokenizer().scores.size(), 384U);
  EXPECT_TRUE(spm.tokenizer().add_bos);
  EXPECT_TRUE(spm.tokenizer().add_space_prefix);
  EXPECT_EQ(spm.tokenizer().unk, 0);

  const auto alone = read_tokenizer(path());
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->spec.tokens, spm.tokenizer().tokens);
}

TEST_F(ModelFileTest, AnEmbeddingMayBeLargerThanTheVocabularyButNotSmaller) {
  const auto file = open({.vocab = 400, .vocab_padding = 16});
  EXPECT_EQ(file.config().vocab_size, 400);
  EXPECT_EQ(file.tokenizer().tokens.size(), 384U);
  EXPECT_THAT(error_of({.vocab_padding = -8}).message(), HasSubstr("vocabulary: 392 tokens, but the embedding has only 384 rows"));
}

TEST_F(ModelFileTest, WeightsAreTheValuesThatWereWritten) {
  const auto exact = open({.type = DType::f32});
  const auto* want = exact.find("blk.0.ffn_up.weight");
  std::vector<float> values(static_cast<std::size_t>(want->shape.elements()));
  kernels::dequantize_row(want->dtype, want->data, values.data(), want->shape.elements());
  double sum = 0, squares = 0;
  for (const float v : values) {
    sum += v;
    squares += static_cast<double>(v) * v;
  }
  const auto n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0.0, 0.01);
  EXPECT_NEAR(squares / n, 1.0 / 64, 0.002);
}

TEST_F(ModelFileTest, ShapesThatDisagreeWithTheHyperparametersAreRefusedByName) {
  write_random_model(path(), {});
  // The feed-forward width in the metadata, changed in place.
  std::string bytes(std::filesystem::file_size(path()), '\0');
  {
    std::FILE* f = std::fopen(path().c_str(), "r+b");
    ASSERT_EQ(std::fread(bytes.data(), 1, bytes.size(), f), bytes.size());
    const std::string key = "llama.feed_forward_length";
    const auto at = static_cast<long>(bytes.find(key) + key.size() + 4);
    const std::uint32_t other = 100;
    std::fseek(f, at, SEEK_SET);
    std::fwrite(&other, sizeof other, 1, f);
    std::fclose(f);
  }
  const auto file = ModelFile::open(path());
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message(), HasSubstr("tensor 'blk.0.ffn_gate.weight': has the shape [96, 64]"));
}

/// Bytes of the process's memory that hold pages of a file, as the kernel counts them.
std::int64_t resident_bytes_of(const std::filesystem::path& file) {
  std::ifstream maps("/proc/self/smaps");
  std::int64_t kilobytes = 0;
  bool of_file = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) of_file = line.ends_with(file.string());  // "7f0c…-7f0c… r--s …", a mapping's first line
    if (of_file && line.starts_with("Rss:")) kilobytes += std::stoll(line.substr(4));
  }
  return kilobytes * 1024;
}

TEST_F(ModelFileTest, ATensorThatWasLetGoTakesNoMemoryAndReadsTheSameAgain) {
  const ModelFile file = open({.hidden = 256, .ffn = 2048});
  const auto sums = [&] {
    std::vector<std::uint64_t> out;
    for (const auto& [name, tensor] : file.tensors()) {
      std::uint64_t sum = 0;
      for (std::int64_t i = 0; i < tensor.bytes(); ++i) sum = sum * 31 + std::to_integer<std::uint64_t>(tensor.data[i]);
      out.push_back(sum);
    }
    return out;
  };
  const auto before = sums();
  const std::int64_t held = resident_bytes_of(path());
  ASSERT_GT(held, file.file_bytes() / 2);
  for (const auto& [name, tensor] : file.tensors()) file.let_go(tensor);
  EXPECT_LT(resident_bytes_of(path()), held / 4);
  EXPECT_EQ(sums(), before);
}

TEST_F(ModelFileTest, WhatIsNoModelIsAnErrorThatNamesTheFile) {
  const auto absent = ModelFile::open(path());
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().kind, LoadError::Kind::io);
  EXPECT_THAT(absent.error().message(), HasSubstr("model.gguf: open: No such file"));
}

}  // namespace
}  // namespace fixpoint::engine
