// The whole engine over the CUDA backend, on an emulated device or on a real one.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/detail/logit_scan.h"
#include "tests/engine/serving/cuda_fixture.h"
#include "tests/kernels/plain_choice.h"

namespace fixpoint::engine {
namespace {

using testing::Collector;

struct Case {
  std::string name;
  test_models::RandomModelSpec spec;
  kernels::CudaProducts products;
};

class CudaEngineTest : public CudaFixture, public ::testing::WithParamInterface<Case> {
 protected:
  static std::vector<std::vector<TokenId>> answers(LanguageModel& model) {
    std::vector<Collector> collectors(6);
    std::vector<RequestHandle> handles;
    for (std::size_t i = 0; i < collectors.size(); ++i) {
      const auto prompt = testing::words(5 + 6 * static_cast<int>(i), i);
      Request request = i == 0 ? testing::greedy(prompt, 12) : testing::sampled(prompt, 12, i);
      if (i == 1) request.sampling.top_k = 30;
      if (i == 2) request.sampling.top_p = 0.9F;
      if (i == 3) request.sampling = {.temperature = 1.3F, .top_p = 0.8F, .min_p = 0.05F, .seed = 3};
      if (i == 4) request.sampling.frequency_penalty = 0.5F;  // the engine's sampler chooses
      handles.push_back(std::move(*model.engine().submit(request, collectors[i].sink())));
    }
    std::vector<std::vector<TokenId>> tokens;
    for (Collector& collector : collectors) {
      const auto sample = collector.wait().samples[0];
      EXPECT_EQ(sample.finish.error, "");
      tokens.push_back(sample.tokens);
    }
    return tokens;
  }
};

TEST_P(CudaEngineTest, GivesTheProcessorsTokens) {
  LanguageModelOptions on = options(GetParam().spec);
  const auto expected = answers(*load(on));
  on.cuda = kernels::CudaOptions{.products = GetParam().products};
  const auto model = load(on);
  EXPECT_TRUE(model->backend_name().starts_with("cuda ")) << model->backend_name();
  EXPECT_EQ(answers(*model), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaEngineTest,
                         ::testing::Values(Case{"llama_exact", {.arch = Architecture::llama}, kernels::CudaProducts::exact},
                                           Case{"qwen2_fastest", {.arch = Architecture::qwen2}, kernels::CudaProducts::fastest},
                                           Case{"qwen3_exact", {.arch = Architecture::qwen3, .num_kv_heads = 1}, kernels::CudaProducts::exact}),
                         [](const auto& tested) { return tested.param.name; });

using CudaRowsTest = CudaFixture;

TEST_F(CudaRowsTest, OnlyRowsThatTheDeviceDoesNotChooseForComeToTheHost) {
  const auto path = directory_.path() / "model.gguf";
  test_models::write_random_model(path, {.arch = Architecture::llama, .num_layers = 1});
  const std::vector<TokenId> tokens = testing::words(6, 3);
  const std::vector<std::int32_t> q{0, 6}, b{0, 1}, blocks{1}, last{6}, positions{0, 1, 2, 3, 4, 5}, rows{0, 1, 2, 4, 5};
  const auto loaded = [&](std::unique_ptr<kernels::Backend> backend) {
    auto file = ModelFile::open(path);
    if (!file) throw std::runtime_error(file.error().message());
    auto model = Model::load(std::move(*file), std::move(backend));
    if (!model) throw std::runtime_error(model.error().message());
    (*model)->allocate_kv(2, 16, kernels::KvType::f32);
    return std::move(*model);
  };
  const auto forward = [&](Model& model, std::span<const kernels::RowChoice> choices) {
    return model.forward({tokens, {16, q, b, blocks, last, positions}, rows, choices});
  };
  const auto floats = [](std::span<const float> span) { return std::vector<float>(span.begin(), span.end()); };
  const auto model = loaded(kernels::make_cuda_backend());
  const auto width = static_cast<std::size_t>(model->vocab_size());
  const auto vocabulary = static_cast<std::int32_t>(width);
  const std::vector<float> all = floats(forward(*model, {}).logits);
  ASSERT_EQ(all.size(), 5 * width);
  const auto row = [&](std::size_t i) { return std::span(all).subspan(i * width, width); };

  const std::vector<kernels::RowChoice> some{{.row = 1, .vocab_size = vocabulary},
                                             {.row = 3, .vocab_size = vocabulary, .inverse_temperature = 0.7F, .top_p = 0.9F, .u = 0.6}};
  const StepOutput output = forward(*model, some);
  ASSERT_EQ(output.chosen.size(), 2U);
  EXPECT_EQ(output.chosen[0], kernels::plain_choice(row(1), some[0], detail::token_weight));
  EXPECT_EQ(output.chosen[1], kernels::plain_choice(row(3), some[1], detail::token_weight));
  std::vector<float> left = floats(row(0));
  for (const std::size_t i : {2U, 4U}) left.insert(left.end(), row(i).begin(), row(i).end());
  EXPECT_EQ(floats(output.logits), left);

  std::vector<kernels::RowChoice> each;
  for (std::int32_t i = 0; i < 5; ++i) each.push_back({.row = i, .vocab_size = vocabulary});
  EXPECT_EQ(forward(*model, each).chosen.size(), 5U);
  EXPECT_TRUE(forward(*model, each).logits.empty());

  const auto on_host = loaded(kernels::make_cpu_backend({.num_threads = 1}));
  EXPECT_TRUE(forward(*on_host, some).chosen.empty());
  EXPECT_EQ(forward(*on_host, some).logits.size(), 5 * width);
}

using CudaPrefillTest = CudaFixture;

// A prompt long enough for the tensor cores, which round queries and weights to F16.
TEST_F(CudaPrefillTest, FastestModeGivesNearlyTheProcessorsLogits) {
  const auto path = options({.arch = Architecture::qwen2, .num_kv_heads = 1}).path;
  const auto logits = [&](std::unique_ptr<kernels::Backend> backend) {
    auto file = ModelFile::open(path);
    const auto model = Model::load(std::move(*file), std::move(backend));
    (*model)->allocate_kv(6, 16, kernels::KvType::f16);
    return forward(**model, 0, 90, 2);
  };
  const std::vector<float> expected = logits(kernels::make_cpu_backend({.num_threads = 1}));
  const std::vector<float> actual = logits(kernels::make_cuda_backend({.products = kernels::CudaProducts::fastest}));
  ASSERT_EQ(actual.size(), expected.size());
  double square = 0;
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    square += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
    worst = std::max(worst, std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i])));
  }
  EXPECT_LT(worst, 5e-2 * std::sqrt(square / static_cast<double>(expected.size())));
}

}  // namespace
}  // namespace fixpoint::engine
