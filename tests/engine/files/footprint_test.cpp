#include "engine/footprint.h"

#include <gtest/gtest.h>

namespace fixpoint::engine {
namespace {

/// Llama-3-70B: 80 layers, 8 KV heads of 128.
ModelConfig llama_70b() {
  ModelConfig config;
  config.num_layers = 80;
  config.num_heads = 64;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  return config;
}

constexpr double kGiB = 1024.0 * 1024 * 1024;

TEST(FootprintTest, Llama70BTakes320KiBATokenInBf16) {
  EXPECT_EQ(kv_bytes_per_token(llama_70b(), KvType::bf16), 320 * 1024);
}

TEST(FootprintTest, QuantisedTypesGiveTheUsersThatTheirBitsAllow) {
  const auto users = [](KvType type, std::int64_t tokens) {
    return static_cast<double>(users_that_fit(llama_70b(), type, tokens, 640 * kGiB, 140 * kGiB));
  };
  for (const std::int64_t tokens : {2048, 4096, 32768}) {
    const double half = users(KvType::f16, tokens);
    EXPECT_NEAR(users(KvType::int8, tokens) / half, 2 / (1 + 2.0 / 128), 0.1) << tokens;
    EXPECT_EQ(users(KvType::fp8_e4m3, tokens), users(KvType::int8, tokens));
    EXPECT_NEAR(users(KvType::int4, tokens) / half, 2 / (0.5 + 4.0 / 32), 0.1) << tokens;
  }
}

TEST(FootprintTest, AGibHoldsATenthOfAContextOf32kOfLlama70B) {
  ModelConfig config = llama_70b();
  config.context_length = 32768;
  EXPECT_DOUBLE_EQ(full_contexts_per_gib(config, KvType::f16), 0.1);
}

TEST(FootprintTest, NobodyFitsWhereTheWeightsDoNot) {
  EXPECT_EQ(users_that_fit(llama_70b(), KvType::f16, 2048, 80 * kGiB, 140 * kGiB), 0);
}

TEST(FootprintTest, AUserTakesWholeBlocks) {
  const auto block = static_cast<double>(16 * kv_bytes_per_token(llama_70b(), KvType::f16));
  EXPECT_EQ(users_that_fit(llama_70b(), KvType::f16, 17, 4 * block, 0), 2);
  EXPECT_EQ(users_that_fit(llama_70b(), KvType::f16, 16, 4 * block, 0), 4);
}

}  // namespace
}  // namespace fixpoint::engine
