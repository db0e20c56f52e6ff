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
  EXPECT_EQ(kv_bytes_per_token(llama_70b(), KvType::bf16), 320.0 * 1024);
}

TEST(FootprintTest, Int4GivesAboutFourTimesTheUsersOfFp16) {
  for (const std::int64_t tokens : {2048, 4096, 32768}) {
    const auto half = static_cast<double>(users_that_fit(llama_70b(), KvType::f16, tokens, 640 * kGiB, 140 * kGiB));
    const auto int4 = static_cast<double>(users_that_fit(llama_70b(), KvType::int4, tokens, 640 * kGiB, 140 * kGiB));
    EXPECT_GT(int4 / half, 3.7) << tokens;  // its scales and offsets take the rest
    EXPECT_LT(int4 / half, 4.0) << tokens;
  }
}

TEST(FootprintTest, NobodyFitsWhereTheWeightsDoNot) {
  EXPECT_EQ(users_that_fit(llama_70b(), KvType::f16, 2048, 80 * kGiB, 140 * kGiB), 0);
}

TEST(FootprintTest, AUserTakesWholeBlocks) {
  const double block = 16 * kv_bytes_per_token(llama_70b(), KvType::f16);
  EXPECT_EQ(users_that_fit(llama_70b(), KvType::f16, 17, 4 * block, 0), 2);
  EXPECT_EQ(users_that_fit(llama_70b(), KvType::f16, 16, 4 * block, 0), 4);
}

}  // namespace
}  // namespace fixpoint::engine
