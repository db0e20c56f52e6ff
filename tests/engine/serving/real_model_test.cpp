#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/language_model.h"
#include "tests/engine/models/random_model.h"
#include "tests/engine/models/temporary_directory.h"
#include "tests/engine/serving/served.h"

namespace fixpoint::engine {
namespace {

using testing::Collector;
using testing::words;

struct Case {
  std::string name;
  test_models::RandomModelSpec spec;
  kernels::DType kv = kernels::DType::f16;
};

/// The exactness property with real weights and kernels: what a request is answered does not depend on what is cached, on
/// what shares its steps, on how its prompt is cut, or on being preempted.
class RealModelTest : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] std::unique_ptr<LanguageModel> load(const EngineOptions& engine, std::size_t blocks) const {
    const auto path = directory_.path() / "model.gguf";
    if (!std::filesystem::exists(path)) test_models::write_random_model(path, GetParam().spec);
    LanguageModelOptions options;
    options.path = path;
    options.cpu.num_threads = 2;
    options.engine = engine;
    options.engine.kv_dtype = GetParam().kv;
    const auto& spec = GetParam().spec;
    const std::size_t element = GetParam().kv == kernels::DType::f32 ? 4 : 2;
    const auto per_token = static_cast<std::size_t>(2 * spec.num_layers * spec.num_kv_heads * spec.head_dim) * element;
    // A block may be padded; half a block on top rounds down to the number that is meant.
    options.engine.kv_memory_bytes = (2 * blocks + 1) * per_token * static_cast<std::size_t>(engine.block_size) / 2;
    auto model = LanguageModel::load(options);
    if (!model) throw std::runtime_error(model.error().message());
    return std::move(*model);
  }

  static std::vector<Request> requests(std::mt19937& random) {
    std::vector<Request> all;
    const auto shared = words(45, random());
    for (int i = 0; i < 10; ++i) {
      std::vector<TokenId> prompt(shared.begin(), shared.begin() + static_cast<std::ptrdiff_t>(random() % shared.size()));
      const auto own = words(1 + static_cast<int>(random() % 30), random());
      prompt.insert(prompt.end(), own.begin(), own.end());
      Request request = i % 2 == 0 ? testing::greedy(prompt, 12) : testing::sampled(prompt, 12, random());
      request.priority = static_cast<int>(random() % 2);
      request.sampling.logprobs = true;
      all.push_back(std::move(request));
    }
    return all;
  }

  test_models::TemporaryDirectory directory_;
};

TEST_P(RealModelTest, AnswersDoNotDependOnBatchCacheChunksOrPreemption) {
  std::mt19937 random(11);
  const auto asked = requests(random);
  // Attention sums in tiles of blocks, so the bits belong to a block size.
  std::map<int, std::vector<CompletedSample>> alone_with;
  for (const int block_size : {16, 4}) {
    const auto model = load({.block_size = block_size, .max_running = 1}, static_cast<std::size_t>(1024 / block_size));
    for (std::size_t i = 0; i < asked.size(); ++i) {
      Request request = asked[i];
      request.tenant = std::to_string(i);  // nothing is shared: cold
      alone_with[block_size].push_back(model->engine().generate(request)->samples[0]);
    }
  }
  std::uint64_t preemptions = 0;
  for (int mix = 0; mix < 6; ++mix) {
    const int block_size = mix % 2 == 0 ? 16 : 4;
    const auto& alone = alone_with[block_size];
    // The longest request has 87 tokens; there is room for that and little more.
    const auto model = load({.block_size = block_size,
                             .max_running = 1 + static_cast<int>(random() % 8),
                             .max_step_tokens = mix == 0 ? 512 : 8 + static_cast<int>(random() % 40)},
                            static_cast<std::size_t>(mix < 2 ? 4096 / block_size : 128 / block_size));
    for (int round = 0; round < 2; ++round) {
      std::vector<Collector> collectors(asked.size());
      std::vector<RequestHandle> handles;
      for (std::size_t i = 0; i < asked.size(); ++i) handles.push_back(std::move(*model->engine().submit(asked[i], collectors[i].sink())));
      for (std::size_t i = 0; i < asked.size(); ++i) {
        const auto sample = collectors[i].wait().samples[0];
        ASSERT_EQ(sample.finish.error, "");
        ASSERT_EQ(sample.tokens, alone[i].tokens) << "mix " << mix << " round " << round << " request " << i;
        ASSERT_EQ(sample.logprobs, alone[i].logprobs) << "to the bit";
      }
    }
    preemptions += model->engine().stats().preemptions;
    EXPECT_GT(model->engine().stats().prefix_hit_tokens, 0U);
  }
  EXPECT_GT(preemptions, 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Models, RealModelTest,
    ::testing::Values(Case{"llama_f32", {.arch = Architecture::llama}, kernels::DType::f32},
                      Case{"qwen2_bf16", {.arch = Architecture::qwen2, .type = kernels::DType::bf16}, kernels::DType::bf16},
                      Case{"qwen3_q8_0", {.arch = Architecture::qwen3, .type = kernels::DType::q8_0}, kernels::DType::f16},
                      Case{"llama_q4_0", {.arch = Architecture::llama, .num_kv_heads = 1, .type = kernels::DType::q4_0}, kernels::DType::f16}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace fixpoint::engine
