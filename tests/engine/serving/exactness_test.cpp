#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/engine/serving/random_requests.h"
#include "tests/engine/serving/served.h"

namespace fixpoint::engine {
namespace {

using testing::Collector;
using testing::expect_same;
using testing::greedy;
using testing::kVocabulary;
using testing::random_requests;
using testing::sampled;
using testing::serve;
using testing::Served;
using testing::words;

/// All of them at once, twice (cold and warm), by an engine whose limits `random` draws.
void expect_same_together(const std::vector<Request>& requests, const std::vector<Completion>& alone, std::mt19937& random) {
  const int block_size = 1 + static_cast<int>(random() % 8);
  const int most = 56 + 12 + 16;  // tokens of the longest
  const Served served = serve(most / block_size + 1 + static_cast<int>(random() % 10),
                              {.block_size = block_size,
                               .max_running = 1 + static_cast<int>(random() % 8),
                               .max_step_tokens = 1 + static_cast<int>(random() % 20),
                               .ageing_steps = 1 + static_cast<int>(random() % 30)});
  for (int round = 0; round < 2; ++round) {
    std::vector<std::size_t> order(requests.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    std::vector<Collector> collectors;
    for (const Request& request : requests) collectors.emplace_back(request.n);
    std::vector<RequestHandle> handles;
    for (const std::size_t i : order) {
      auto handle = served->submit(requests[i], collectors[i].sink());
      ASSERT_TRUE(handle) << handle.error().message();
      handles.push_back(std::move(*handle));
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_same(collectors[i].wait(), alone[i], (round == 0 ? "cold, request " : "warm, request ") + std::to_string(i)));
    }
  }
  EXPECT_EQ(served->stats().watchdog_trips, 0U);
}

/// Requests are answered alone by a fresh engine each, and then together, in another order, by engines with random limits:
/// block size, chunks, slots, and a memory that is too small for all of them.
class ExactnessTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(ExactnessTest, AnswersDoNotDependOnBatchCacheChunksOrPreemption) {
  std::mt19937 random(GetParam());
  const auto requests = random_requests(random, 8);
  std::vector<Completion> alone;
  for (const Request& request : requests) {
    const Served fresh = serve(100, {.block_size = 16});
    alone.push_back(*fresh->generate(request));
  }
  for (int mix = 0; mix < 3; ++mix) ASSERT_NO_FATAL_FAILURE(expect_same_together(requests, alone, random)) << "mix " << mix;
}

INSTANTIATE_TEST_SUITE_P(Mixes, ExactnessTest, ::testing::Range(0U, 100U));

/// Prompts that begin alike, of every length around a block's; a tenant of its own makes a request cold.
TEST(ThousandPromptsTest, TokensAreTheSameColdAndWarmAloneAndBy32) {
  constexpr int kPrompts = 1'000, kTogether = 32, kTokens = 6;
  std::vector<Request> requests;
  for (int i = 0; i < kPrompts; ++i) {
    std::vector<TokenId> prompt = words(15 + i % 37, static_cast<std::uint64_t>(i % 5));
    const auto own = words(1 + i % 3, 1'000 + static_cast<std::uint64_t>(i));
    prompt.insert(prompt.end(), own.begin(), own.end());
    requests.push_back(i % 2 == 0 ? greedy(prompt, kTokens) : sampled(prompt, kTokens, static_cast<std::uint64_t>(i)));
  }
  const Served served = serve(2'000, {.block_size = 16, .max_running = kTogether, .max_step_tokens = 64});
  std::vector<Completion> cold;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Request alone = requests[i];
    alone.tenant = "cold " + std::to_string(i);
    cold.push_back(*served->generate(alone));
    ASSERT_EQ(cold.back().samples[0].finish.usage.cached_tokens, 0);
  }
  std::int64_t cached = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Completion warm = *served->generate(requests[i]);
    cached += warm.samples[0].finish.usage.cached_tokens;
    ASSERT_NO_FATAL_FAILURE(expect_same(warm, cold[i], "warm, prompt " + std::to_string(i)));
  }
  EXPECT_GT(cached, 10 * kPrompts) << "most of each prompt but the first";
  for (std::size_t from = 0; from < requests.size(); from += kTogether) {
    const std::size_t to = std::min(requests.size(), from + kTogether);
    std::vector<Collector> collectors(to - from);
    std::vector<RequestHandle> handles;
    for (std::size_t i = from; i < to; ++i) handles.push_back(std::move(*served->submit(requests[i], collectors[i - from].sink())));
    for (std::size_t i = from; i < to; ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_same(collectors[i - from].wait(), cold[i], "by 32, prompt " + std::to_string(i)));
    }
  }
}

/// A request with all that depends on what came before: a seed, and every penalty.
Request penalised() {
  Request request = sampled(words(9, 5), 18, 77);
  request.sampling.top_k = 40;
  request.sampling.repetition_penalty = 1.3F;
  request.sampling.presence_penalty = 0.4F;
  request.sampling.frequency_penalty = 0.6F;
  request.sampling.logprobs = true;
  return request;
}

TEST(ExactnessAtEachStepTest, ASeedAndPenaltiesSurvivePreemptionAtEveryStep) {
  const Completion alone = *serve(100)->generate(penalised());
  int preempted = 0;
  for (int when = 1; when <= 19; ++when) {
    testing::StepGate gate;
    const Served served = serve(16, {.block_size = 4, .max_running = 1, .max_step_tokens = 8}, {.vocab = kVocabulary, .padding = 8},
                                [&](testing::FakeModel& model) { gate.attach(model); });
    Collector victim, urgent;
    const auto first = served->submit(penalised(), victim.sink());
    gate.run_to(when);
    Request hurry = greedy(words(30, 6), 2);
    hurry.priority = 10;
    const auto second = served->submit(hurry, urgent.sink());
    gate.open();
    expect_same(victim.wait(), alone, "preempted in step " + std::to_string(when));
    EXPECT_EQ(urgent.wait().samples[0].tokens, served.model->continue_greedily(words(30, 6), 2));
    preempted += served->stats().preemptions > 0 ? 1 : 0;
  }
  EXPECT_GE(preempted, 17) << "all but the last steps";
}

TEST(UnseededTest, TenEqualRequestsInOneBatchDrawDifferently) {
  testing::StepGate gate;
  const Served served = serve(100, {.max_running = 10}, {.vocab = kVocabulary, .padding = 8},
                              [&](testing::FakeModel& model) { gate.attach(model); });
  Request request = sampled(words(6, 1), 12, 0);
  request.sampling.seed.reset();
  request.sampling.temperature = 1.0F;
  std::vector<Collector> collectors(10);
  std::vector<RequestHandle> handles;
  for (Collector& collector : collectors) handles.push_back(std::move(*served->submit(request, collector.sink())));
  gate.open();
  std::set<std::vector<TokenId>> answers;
  std::set<std::uint64_t> seeds;
  for (Collector& collector : collectors) answers.insert(collector.wait().samples[0].tokens);
  for (const RequestHandle& handle : handles) seeds.insert(handle.seed());
  EXPECT_EQ(seeds.size(), 10U);
  EXPECT_EQ(answers.size(), 10U);
}

}  // namespace
}  // namespace fixpoint::engine
