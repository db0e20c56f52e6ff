#include "engine/kv_comparison.h"

#include <gtest/gtest.h>

#include "engine/model.h"
#include "tests/engine/models/random_model.h"
#include "tests/engine/models/temporary_directory.h"
#include "tests/engine/serving/served.h"

namespace fixpoint::engine {
namespace {

using kernels::KvType;

class KvComparisonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = directory_.path() / "model.gguf";
    test_models::write_random_model(path, {.arch = Architecture::llama, .head_dim = 64});
    auto file = ModelFile::open(path);
    ASSERT_TRUE(file) << file.error().message();
    auto model = Model::load(std::move(*file), kernels::make_cpu_backend({.num_threads = 1}));
    ASSERT_TRUE(model);
    model_ = std::move(*model);
  }

  test_models::TemporaryDirectory directory_;
  std::unique_ptr<Model> model_;
};

TEST_F(KvComparisonTest, TheBaselineDoesNotDifferFromItself) {
  const auto same = compare_kv_types(*model_, testing::words(100, 1), std::array{KvType::f16}, {.window = 50, .compared = 8});
  ASSERT_EQ(same.size(), 1U);
  EXPECT_EQ(same[0].positions, 16);
  EXPECT_EQ(same[0].largest_error, 0.0);
  EXPECT_EQ(same[0].mean_divergence, 0.0);
  EXPECT_EQ(same[0].same_first, 1.0);
}

TEST_F(KvComparisonTest, FewerBitsDifferMore) {
  const std::array types{KvType::f16, KvType::int8, KvType::fp8_e4m3, KvType::int4};
  const auto all = compare_kv_types(*model_, testing::words(300, 2), types, {.baseline = KvType::f32, .window = 100, .compared = 20});
  ASSERT_EQ(all.size(), types.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].type, types[i]);
    EXPECT_EQ(all[i].positions, 60);
    EXPECT_GT(all[i].mean_error, 0.0);
    EXPECT_GE(all[i].largest_error, all[i].mean_error);
    EXPECT_GT(all[i].mean_divergence, 0.0);
    if (i > 0) {
      EXPECT_GT(all[i].mean_error, all[i - 1].mean_error) << to_string(types[i]);
    }
  }
}

TEST_F(KvComparisonTest, ATextShorterThanAWindowIsComparedWhole) {
  const auto one = compare_kv_types(*model_, testing::words(7, 3), std::array{KvType::int8});
  EXPECT_EQ(one[0].positions, 7);
}

TEST_F(KvComparisonTest, RefusesAWindowBeyondTheContext) {
  EXPECT_THROW(static_cast<void>(compare_kv_types(*model_, testing::words(7, 3), std::array{KvType::int8},
                                                  {.window = model_->context_length() + 1})),
               std::invalid_argument);
  EXPECT_THROW(static_cast<void>(compare_kv_types(*model_, {}, std::array{KvType::int8})), std::invalid_argument);
}

}  // namespace
}  // namespace fixpoint::engine
