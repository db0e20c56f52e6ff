#include <gtest/gtest.h>

#include <algorithm>
#include <future>
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
  kernels::KvType kv = kernels::KvType::f16;
  int block_size = 16;
};

/// Rows of whole 256-element blocks.
test_models::RandomModelSpec wide(Architecture arch, kernels::DType type) {
  return {.arch = arch, .num_layers = 1, .hidden = 256, .num_heads = 4, .num_kv_heads = 2, .head_dim = 64, .ffn = 256, .type = type};
}

/// Q4_K with Q6_K where it matters most, and Q5_0 where rows are no whole blocks.
test_models::RandomModelSpec mixed() {
  auto spec = wide(Architecture::qwen2, kernels::DType::q4_k);
  spec.num_layers = 2;
  spec.ffn = 96;
  spec.embedding_type = kernels::DType::q8_0;
  spec.down_type = kernels::DType::q6_k;
  spec.fallback = kernels::DType::q5_0;
  return spec;
}

/// The exactness property with real weights and kernels: what a request is answered does not depend on what is cached, on
/// what shares its steps, on how its prompt is cut, or on being preempted. The block size is part of the question: the
/// attention combines blocks in order.
class RealModelTest : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] std::unique_ptr<LanguageModel> load(EngineOptions engine, int tokens, int threads) const {
    const auto path = directory_.path() / "model.gguf";
    if (!std::filesystem::exists(path)) test_models::write_random_model(path, GetParam().spec);
    LanguageModelOptions options;
    options.path = path;
    options.cpu.num_threads = threads;
    engine.block_size = GetParam().block_size;
    options.engine = engine;
    options.engine.kv_type = GetParam().kv;
    const auto& spec = GetParam().spec;
    const std::size_t block = kernels::make_cpu_backend({.num_threads = 1})
                                  ->kv_bytes({.num_blocks = 1,
                                              .block_size = engine.block_size,
                                              .num_kv_heads = static_cast<std::int32_t>(spec.num_kv_heads),
                                              .head_dim = static_cast<std::int32_t>(spec.head_dim),
                                              .type = GetParam().kv});
    options.engine.kv_memory_bytes = static_cast<std::size_t>(tokens / engine.block_size * spec.num_layers) * block;
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
      Request request = i % 2 == 0 ? testing::greedy(prompt, 40) : testing::sampled(prompt, 40, random());
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
  std::vector<CompletedSample> alone;
  {
    const auto model = load({.max_running = 1}, 1024, 1);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      Request request = asked[i];
      request.tenant = std::to_string(i);  // nothing is shared: cold
      alone.push_back(model->engine().generate(request)->samples[0]);
    }
  }
  std::uint64_t preemptions = 0;
  for (int mix = 0; mix < 4; ++mix) {
    // The longest request has 115 tokens at its end; there is room for that and little more.
    const auto model = load({.max_running = mix == 0 ? 10 : 2 + static_cast<int>(random() % 6),
                             .max_step_tokens = mix == 0 ? 512 : 8 + static_cast<int>(random() % 40)},
                            mix == 0 ? 4096 : 128, 1 + mix % 2);
    for (int round = 0; round < 2; ++round) {
      std::vector<Collector> collectors(asked.size());
      std::vector<RequestHandle> handles;
      for (std::size_t i = 0; i < asked.size(); ++i) handles.push_back(std::move(*model->engine().submit(asked[i], collectors[i].sink())));
      for (std::size_t i = 0; i < asked.size(); ++i) {
        const auto sample = collectors[i].wait().samples[0];
        ASSERT_EQ(sample.finish.error, "");
        ASSERT_EQ(sample.tokens, alone[i].tokens) << "mix " << mix << " round " << round << " request " << i;
        ASSERT_TRUE(sample.logprobs == alone[i].logprobs) << "not to the bit: mix " << mix << " round " << round << " request " << i;
      }
    }
    preemptions += model->engine().stats().preemptions;
    EXPECT_GT(model->engine().stats().prefix_hit_tokens, 0U);
  }
  EXPECT_GT(preemptions, 0U);
}

// Thirty-two sequences in one step: the widest products that a small machine computes, and every row of them as if alone.
TEST_P(RealModelTest, ThirtyTwoInOneBatchAnswerAsAlone) {
  constexpr std::size_t kRequests = 32;
  constexpr int kTokens = 12;
  const auto request = [](std::size_t i) {
    const auto prompt = words(3 + static_cast<int>(i % 7), i + 100);
    return i % 2 == 0 ? testing::greedy(prompt, kTokens) : testing::sampled(prompt, kTokens, i);
  };
  std::vector<std::vector<TokenId>> alone;
  {
    const auto model = load({.max_running = 1}, 1024, 1);
    for (std::size_t i = 0; i < kRequests; ++i) alone.push_back(model->engine().generate(request(i))->samples[0].tokens);
  }
  const auto model = load({.max_running = 33, .max_step_tokens = 512}, 4096, 2);
  // The first request's callback keeps the engine's thread until all others wait.
  std::promise<void> all_wait;
  const auto ready = all_wait.get_future().share();
  const auto first = model->engine().submit(testing::greedy(words(2, 1), 1), [ready](const Output&) { ready.wait(); });
  std::vector<Collector> collectors(kRequests);
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < kRequests; ++i) handles.push_back(std::move(*model->engine().submit(request(i), collectors[i].sink())));
  all_wait.set_value();
  for (std::size_t i = 0; i < kRequests; ++i) ASSERT_EQ(collectors[i].wait().samples[0].tokens, alone[i]) << "request " << i;
  EXPECT_LE(model->engine().stats().steps, 1U + kTokens + 1U) << "all of them in each step";
}

// Drafts that are right, wrong in places and made up: every row is computed as if it were alone, so the bits are the same.
TEST_P(RealModelTest, SpeculationChangesNoBit) {
  std::mt19937 random(12);
  auto asked = requests(random);
  std::vector<CompletedSample> plain;
  {
    const auto model = load({.max_running = 1, .speculation = Speculation::off}, 1024, 1);
    for (const Request& request : asked) plain.push_back(model->engine().generate(request)->samples[0]);
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    asked[i].prediction = plain[i].tokens;
    for (TokenId& token : asked[i].prediction) token = random() % 8 == 0 ? static_cast<TokenId>(random() % 200) : token;
  }
  for (const Speculation speculation : {Speculation::always, Speculation::measured}) {
    const auto model = load({.max_running = 4, .max_step_tokens = 100, .speculation = speculation}, 256, 2);
    for (int round = 0; round < 2; ++round) {
      std::vector<Collector> collectors(asked.size());
      std::vector<RequestHandle> handles;
      for (std::size_t i = 0; i < asked.size(); ++i) handles.push_back(std::move(*model->engine().submit(asked[i], collectors[i].sink())));
      for (std::size_t i = 0; i < asked.size(); ++i) {
        const auto sample = collectors[i].wait().samples[0];
        ASSERT_EQ(sample.tokens, plain[i].tokens) << "request " << i;
        ASSERT_TRUE(sample.logprobs == plain[i].logprobs) << "not to the bit: request " << i;
      }
    }
    if (speculation == Speculation::always) {
      EXPECT_GT(model->engine().stats().drafts[static_cast<std::size_t>(DraftSource::previous_attempt)].accepted_tokens, 300U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, RealModelTest,
    ::testing::Values(Case{"llama_f32", {.arch = Architecture::llama}, kernels::KvType::f32},
                      Case{"llama_f32_blocks_of_4", {.arch = Architecture::llama}, kernels::KvType::f16, 4},
                      Case{"qwen2_bf16", {.arch = Architecture::qwen2, .type = kernels::DType::bf16}, kernels::KvType::bf16},
                      Case{"qwen3_q8_0", {.arch = Architecture::qwen3, .type = kernels::DType::q8_0}},
                      Case{"llama_q4_0", {.arch = Architecture::llama, .num_kv_heads = 1, .type = kernels::DType::q4_0}},
                      Case{"llama_f16", {.arch = Architecture::llama, .type = kernels::DType::f16}},
                      Case{"llama_q4_k", wide(Architecture::llama, kernels::DType::q4_k)},
                      Case{"qwen3_q6_k", wide(Architecture::qwen3, kernels::DType::q6_k)},
                      Case{"qwen2_mixed_as_q4_k_m", mixed()},
                      Case{"llama_kv_int8", {.arch = Architecture::llama}, kernels::KvType::int8},
                      Case{"qwen2_kv_fp8_blocks_of_4", {.arch = Architecture::qwen2, .type = kernels::DType::bf16}, kernels::KvType::fp8_e4m3, 4},
                      Case{"qwen3_kv_int4", {.arch = Architecture::qwen3, .head_dim = 48}, kernels::KvType::int4}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace fixpoint::engine
