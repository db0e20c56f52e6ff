// The whole engine over the CUDA backend, on an emulated device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/detail/logit_scan.h"
#include "engine/language_model.h"
#include "engine/model.h"
#include "kernels/cuda_backend.h"
#include "tests/cuda_emulation/emulated_stream.h"
#include "tests/engine/models/random_model.h"
#include "tests/engine/models/temporary_directory.h"
#include "tests/engine/serving/served.h"
#include "tests/kernels/plain_choice.h"

namespace fixpoint::engine {
namespace {

using testing::Collector;

struct Case {
  std::string name;
  test_models::RandomModelSpec spec;
  kernels::CudaProducts products;
};

class CudaEngineTest : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] static std::unique_ptr<LanguageModel> load(const LanguageModelOptions& options) {
    auto model = LanguageModel::load(options);
    if (!model) throw std::runtime_error(model.error().message());
    return std::move(*model);
  }

  [[nodiscard]] LanguageModelOptions options(const test_models::RandomModelSpec& spec) const {
    LanguageModelOptions options;
    options.path = directory_.path() / "model.gguf";
    test_models::write_random_model(options.path, spec);
    options.cpu.num_threads = 1;
    options.engine = {.kv_memory_bytes = std::size_t{1} << 20U, .kv_type = kernels::KvType::f32, .max_running = 4, .max_step_tokens = 24};
    return options;
  }

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

  test_models::TemporaryDirectory directory_;
};

TEST_P(CudaEngineTest, GivesTheProcessorsTokens) {
  LanguageModelOptions on = options(GetParam().spec);
  const auto expected = answers(*load(on));
  on.cuda = kernels::CudaOptions{.products = GetParam().products};
  const auto model = load(on);
  EXPECT_TRUE(model->backend_name().starts_with("cuda emulated")) << model->backend_name();
  EXPECT_EQ(answers(*model), expected);
}

INSTANTIATE_TEST_SUITE_P(Models, CudaEngineTest,
                         ::testing::Values(Case{"llama_exact", {.arch = Architecture::llama}, kernels::CudaProducts::exact},
                                           Case{"qwen2_fastest", {.arch = Architecture::qwen2}, kernels::CudaProducts::fastest},
                                           Case{"qwen3_exact", {.arch = Architecture::qwen3, .num_kv_heads = 1}, kernels::CudaProducts::exact}),
                         [](const auto& tested) { return tested.param.name; });

using CudaRowsTest = CudaEngineTest;

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

using CudaMemoryTest = CudaEngineTest;

TEST_F(CudaMemoryTest, KeysAndValuesTakeWhatTheShareLeaves) {
  constexpr std::size_t kMegabyte = std::size_t{1} << 20U;
  LanguageModelOptions on = options({.arch = Architecture::llama, .num_layers = 1, .context = 2048});
  on.cuda = kernels::CudaOptions{};
  on.engine.kv_memory_bytes.reset();
  on.engine.max_running = 24;
  on.gpu_memory_share = 0.5;
  cuda_emulation::set_device_bytes(20 * kMegabyte);
  {
    const auto model = load(on);
    EXPECT_LE(cuda_emulation::allocated_bytes(), 10 * kMegabyte);
    EXPECT_GE(cuda_emulation::allocated_bytes(), 9 * kMegabyte);
    EXPECT_EQ(model->engine().generate(testing::greedy(testing::words(40, 1), 3))->samples[0].tokens.size(), 3U);
    EXPECT_LE(cuda_emulation::allocated_bytes(), 10 * kMegabyte) << "serving needs no more than was measured";
  }
  on.gpu_memory_share = 0.05;
  const auto too_little = LanguageModel::load(on);
  ASSERT_FALSE(too_little);
  EXPECT_NE(too_little.error().message().find("kv_memory"), std::string::npos) << too_little.error().message();
  cuda_emulation::set_device_bytes(4096 * kMegabyte);
}

TEST_F(CudaMemoryTest, ABlockTakesTheBytesThatItIsCountedAs) {
  auto file = ModelFile::open(options({.arch = Architecture::llama, .head_dim = 20}).path);
  const auto model = Model::load(std::move(*file), kernels::make_cuda_backend());
  for (const kernels::KvType type : kernels::kKvTypes) {
    for (const std::int32_t block_size : {1, 16}) {
      (*model)->allocate_kv(1, block_size, type);  // what was there is gone
      const std::size_t one = cuda_emulation::allocated_bytes();
      (*model)->allocate_kv(31, block_size, type);
      EXPECT_EQ(cuda_emulation::allocated_bytes() - one, 30 * (*model)->kv_bytes_per_block(block_size, type)) << to_string(type);
    }
  }
}

/// Logits of the last `rows` of the tokens first.. + count - 1 of a sequence, in blocks of 16 from the last that it needs.
std::vector<float> forward(Model& model, std::int32_t first, std::int32_t count, std::int32_t rows) {
  const std::vector<TokenId> tokens = testing::words(count, 1);
  const std::int32_t blocks = (first + count + 15) / 16;
  const std::vector<std::int32_t> q_indptr{0, count}, block_indptr{0, blocks}, last_block_len{first + count - 16 * (blocks - 1)};
  std::vector<std::int32_t> block_ids(static_cast<std::size_t>(blocks));
  std::iota(block_ids.rbegin(), block_ids.rend(), 0);
  std::vector<std::int32_t> positions(static_cast<std::size_t>(count)), wanted(static_cast<std::size_t>(rows));
  std::iota(positions.begin(), positions.end(), first);
  std::iota(wanted.begin(), wanted.end(), count - rows);
  const auto logits = model.forward({tokens, {16, q_indptr, block_indptr, block_ids, last_block_len, positions}, wanted, {}}).logits;
  return {logits.begin(), logits.end()};
}

TEST_F(CudaMemoryTest, AStepThatFoundNoMemoryCanBeRepeated) {
  const auto path = options({.arch = Architecture::llama}).path;
  const auto load_model = [&] {
    auto file = ModelFile::open(path);
    auto model = Model::load(std::move(*file), kernels::make_cuda_backend());
    (*model)->allocate_kv(4, 16, kernels::KvType::f16);
    return std::move(*model);
  };
  const auto roomy = load_model();
  const auto tight = load_model();
  struct Step {
    std::int32_t first, count, rows;
  };
  // Each needs more than the one before: all of a step's memory, more logits, what recorded steps of single tokens have.
  for (const Step step : {Step{0, 4, 1}, Step{0, 4, 4}, Step{4, 1, 1}}) {
    const std::vector<float> expected = forward(*roomy, step.first, step.count, step.rows);
    const std::size_t before = cuda_emulation::allocated_bytes();
    std::optional<std::vector<float>> actual;
    int failed = 0;
    for (std::size_t room = 0; room < std::size_t{1} << 20U && !actual; room += 1024) {
      cuda_emulation::set_device_bytes(before + room);
      try {
        actual = forward(*tight, step.first, step.count, step.rows);
      } catch (const std::exception& e) {
        ++failed;
        EXPECT_NE(std::string(e.what()).find("cudaErrorMemoryAllocation"), std::string::npos) << e.what();
      }
    }
    cuda_emulation::set_device_bytes(std::size_t{4} << 30U);
    ASSERT_TRUE(actual);
    EXPECT_EQ(*actual, expected);
    EXPECT_GE(failed, step.first == 0 && step.rows == 1 ? 8 : 1);
  }
}

using CudaPrefillTest = CudaEngineTest;

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
