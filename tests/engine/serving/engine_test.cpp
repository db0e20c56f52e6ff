#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <vector>

#include "engine/detokenizer.h"
#include "tests/engine/serving/served.h"

namespace fixpoint::engine {
namespace {

using testing::Collector;
using testing::greedy;
using testing::kEndOfText;
using testing::kVocabulary;
using testing::sampled;
using testing::serve;
using testing::Served;
using testing::words;

CompletedSample one(Engine& engine, Request request) {
  auto completion = engine.generate(std::move(request));
  EXPECT_TRUE(completion) << (completion ? "" : completion.error().message());
  return completion ? completion->samples.at(0) : CompletedSample{};
}

std::string text_of(const Engine& engine, std::span<const TokenId> tokens) {
  Detokenizer detokenizer(engine.tokenizer(), {});
  std::string text;
  for (const TokenId token : tokens) text += detokenizer.push(token).text;
  return text + detokenizer.finish();
}

TEST(EngineTest, GreedyTokensAreWhatTheModelImplies) {
  const Served served = serve(64);
  const auto prompt = words(40, 1);
  const auto sample = one(*served.engine, greedy(prompt, 20));
  EXPECT_EQ(sample.tokens, served.model->continue_greedily(prompt, 20));
  EXPECT_EQ(sample.finish.reason, FinishReason::length);
  EXPECT_EQ(sample.finish.usage.prompt_tokens, 40);
  EXPECT_EQ(sample.finish.usage.completion_tokens, 20);
  EXPECT_EQ(sample.text, text_of(*served.engine, sample.tokens));
}

TEST(EngineTest, OutputsArriveTokenByTokenAndTheLastSaysWhy) {
  const Served served = serve(64);
  Collector collector;
  const auto handle = served->submit(greedy(words(5, 1), 7), collector.sink());
  ASSERT_TRUE(handle);
  EXPECT_EQ(collector.wait().samples[0].tokens.size(), 7U);
  EXPECT_EQ(collector.outputs(), 7U);
}

// Same prompt, greedy: cold, then cached, alone and in company.
TEST(EngineTest, ColdAndCachedAnswersAreTheSame) {
  const Served served = serve(256, {.block_size = 4});
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto prompt = words(1 + static_cast<int>(i % 37), i);
    const auto cold = one(*served.engine, greedy(prompt, 8));
    const auto warm = one(*served.engine, greedy(prompt, 8));
    EXPECT_EQ(cold.tokens, warm.tokens);
    EXPECT_EQ(warm.tokens, served.model->continue_greedily(prompt, 8));
    EXPECT_EQ(warm.finish.usage.cached_tokens, static_cast<int>(prompt.size()) - 1);
  }
}

TEST(EngineTest, AnotherTenantNeverHitsAndTheSameTenantDoes) {
  const Served served = serve(64);
  const auto prompt = words(40, 1);
  Request request = greedy(prompt, 4);
  request.tenant = "one";
  one(*served.engine, request);
  request.tenant = "two";
  EXPECT_EQ(one(*served.engine, request).finish.usage.cached_tokens, 0);
  request.tenant = "one";
  EXPECT_EQ(one(*served.engine, request).finish.usage.cached_tokens, 39);
}

TEST(EngineTest, ASeededRequestIsTheSameAloneAndAmongOthers) {
  const Served served = serve(512, {.block_size = 4});
  const auto alone = one(*served.engine, sampled(words(10, 1), 20, 42));
  std::vector<Collector> others(31);
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < others.size(); ++i) {
    Request request = sampled(words(10, i), 30, i);
    if (i % 2 == 0) request.sampling.seed.reset();
    handles.push_back(std::move(*served->submit(request, others[i].sink())));
  }
  const auto among = one(*served.engine, sampled(words(10, 1), 20, 42));
  EXPECT_EQ(alone.tokens, among.tokens);
  EXPECT_EQ(alone.text, among.text);
}

TEST(EngineTest, UnseededRequestsDifferAndTellTheirSeed) {
  const Served served = serve(512, {.block_size = 4});
  std::set<std::vector<TokenId>> answers;
  std::set<std::uint64_t> seeds;
  for (int i = 0; i < 10; ++i) {
    Request request = sampled(words(10, 1), 10, 0);
    request.sampling.seed.reset();
    Collector collector;
    const auto handle = served->submit(request, collector.sink());
    const auto tokens = collector.wait().samples[0].tokens;
    answers.insert(tokens);
    seeds.insert(handle->seed());
    EXPECT_EQ(one(*served.engine, sampled(words(10, 1), 10, handle->seed())).tokens, tokens) << "the seed reproduces it";
  }
  EXPECT_EQ(answers.size(), 10U);
  EXPECT_EQ(seeds.size(), 10U);
}

TEST(EngineTest, ParallelSamplesDifferAndShareTheirPrompt) {
  const Served served = serve(64, {.block_size = 4});
  Request request = sampled(words(41, 1), 6, 7);
  request.n = 4;
  const auto completion = served->generate(request);
  ASSERT_TRUE(completion);
  std::set<std::vector<TokenId>> answers;
  int computed = 0;
  for (const auto& sample : completion->samples) {
    answers.insert(sample.tokens);
    computed += sample.finish.usage.prompt_tokens - sample.finish.usage.cached_tokens;
  }
  EXPECT_EQ(answers.size(), 4U);
  EXPECT_EQ(computed, 41 + 3) << "the prompt once, and its last token for each other sample";
  // The first sample is the one that a request for one would get.
  request.n = 1;
  EXPECT_EQ(one(*served.engine, request).tokens, completion->samples[0].tokens);
}

TEST(EngineTest, LogprobsComeWithEachTokenAndDoNotDependOnCompany) {
  const Served served = serve(256, {.block_size = 4});
  Request request = sampled(words(12, 1), 9, 3);
  request.sampling.logprobs = true;
  request.sampling.top_logprobs = 3;
  const auto alone = one(*served.engine, request);
  ASSERT_EQ(alone.logprobs.size(), 9U);
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(alone.logprobs[i].chosen.token, alone.tokens[i]);
    EXPECT_EQ(alone.logprobs[i].top.size(), 3U);
  }
  std::vector<Collector> others(8);
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < others.size(); ++i) handles.push_back(std::move(*served->submit(sampled(words(9, i), 20, i), others[i].sink())));
  EXPECT_EQ(one(*served.engine, request).logprobs, alone.logprobs);
}

TEST(EngineTest, TheTokenizersStopTokenEndsTheTextUnlessIgnored) {
  const auto prompt = words(6, 1);
  const auto ends_after_5 = [&](testing::FakeModel& model) {
    model.on_row = [](std::span<const TokenId> context, std::span<float> row) {
      if (context.size() >= 6 + 5) row[kEndOfText] = 500.0F;
    };
  };
  const Served served = serve(64, {}, {.vocab = kVocabulary, .padding = 8}, ends_after_5);
  Request request = greedy(prompt, 20);
  request.ignore_eos = false;
  const auto stopped = one(*served.engine, request);
  EXPECT_EQ(stopped.finish.reason, FinishReason::stop);
  EXPECT_EQ(std::get<TokenId>(stopped.finish.stop), kEndOfText);
  EXPECT_EQ(stopped.tokens.size(), 6U) << "the stop token is among the tokens";
  EXPECT_EQ(stopped.text, text_of(*served.engine, std::span(stopped.tokens).first(5))) << "and adds no text";

  request.min_tokens = 9;
  const auto later = one(*served.engine, request);
  EXPECT_EQ(later.tokens.size(), 10U);
  EXPECT_EQ(std::count(later.tokens.begin(), later.tokens.end(), kEndOfText), 1);

  request.min_tokens = 0;
  request.ignore_eos = true;
  const auto ignored = one(*served.engine, request);
  EXPECT_EQ(ignored.finish.reason, FinishReason::length);
  EXPECT_EQ(ignored.tokens.size(), 20U);
}

TEST(EngineTest, ARequestsOwnStopTokenEndsIt) {
  const Served served = serve(64);
  const auto prompt = words(6, 1);
  const auto full = served.model->continue_greedily(prompt, 12);
  Request request = greedy(prompt, 12);
  request.stop_tokens = {full[4]};
  const auto sample = one(*served.engine, request);
  const auto first = static_cast<std::size_t>(std::find(full.begin(), full.end(), full[4]) - full.begin());
  EXPECT_EQ(sample.tokens, std::vector<TokenId>(full.begin(), full.begin() + static_cast<std::ptrdiff_t>(first) + 1));
}

// Every place and length of a stop string in the text: it ends there, and no piece ever gave out a part of it.
TEST(EngineTest, AStopStringEndsTheTextBeforeItWhereverItIs) {
  const Served served = serve(64);
  // The model says these bytes one token at a time, so that stops begin and end inside and between tokens.
  const std::string text = "for i in range(10):\n    return i";
  const auto script = served->tokenizer().encode(text, Tokenizer::ControlTokens::as_text);
  const Served scripted = serve(256, {}, {.vocab = kVocabulary, .padding = 8}, [&](testing::FakeModel& model) {
    model.on_row = [&](std::span<const TokenId> context, std::span<float> row) {
      const std::size_t i = context.size() - 3;
      if (i < script.size()) row[static_cast<std::size_t>(script[i])] = 500.0F;
    };
  });
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    for (std::size_t length = 1; begin + length <= text.size(); length += 3) {
      const std::string stop = text.substr(begin, length);
      const std::string before = text.substr(0, text.find(stop));
      Request request = greedy({1, 2, 3}, static_cast<int>(script.size()));
      request.stop_strings = {stop, "never said"};
      Collector collector;
      const auto handle = scripted->submit(request, collector.sink());
      const auto sample = collector.wait().samples[0];
      ASSERT_EQ(sample.text, before) << "stop '" << stop << "'";
      ASSERT_EQ(sample.finish.reason, FinishReason::stop);
      ASSERT_EQ(std::get<std::string>(sample.finish.stop), stop);
      std::string given;
      for (const auto& piece : collector.pieces()) {
        given += piece;
        ASSERT_TRUE(before.starts_with(given));
      }
    }
  }
}

TEST(EngineTest, TheContextsEndIsALengthFinish) {
  const Served served = serve(64, {}, {.vocab = kVocabulary, .padding = 0, .context = 30});
  Request request = greedy(words(20, 1), 1000);
  EXPECT_EQ(one(*served.engine, request).tokens.size(), 10U) << "max_tokens beyond the context means up to it";
  request.max_tokens.reset();
  const auto sample = one(*served.engine, request);
  EXPECT_EQ(sample.tokens.size(), 10U);
  EXPECT_EQ(sample.finish.reason, FinishReason::length);
}

TEST(EngineTest, PenaltiesAndSeedsSurvivePreemption) {
  const auto ask = [](Served& served, int company) {
    std::vector<Collector> collectors(static_cast<std::size_t>(company));
    std::vector<RequestHandle> handles;
    for (int i = 0; i < company; ++i) {
      Request request = sampled(words(8, static_cast<std::uint64_t>(i)), 40, static_cast<std::uint64_t>(i));
      request.sampling.repetition_penalty = 1.2F;
      request.sampling.presence_penalty = 0.5F;
      request.sampling.frequency_penalty = 0.3F;
      handles.push_back(std::move(*served->submit(request, collectors[static_cast<std::size_t>(i)].sink())));
    }
    std::vector<std::vector<TokenId>> answers;
    for (auto& collector : collectors) answers.push_back(collector.wait().samples[0].tokens);
    return answers;
  };
  Served roomy = serve(1024, {.block_size = 4});
  Served tight = serve(20, {.block_size = 4});
  EXPECT_EQ(ask(roomy, 8), ask(tight, 8));
  EXPECT_EQ(roomy->stats().preemptions, 0U);
  EXPECT_GT(tight->stats().preemptions, 0U);
}

TEST(EngineTest, EveryFieldOutOfRangeIsNamed) {
  const Served served = serve(64, {}, {.vocab = kVocabulary, .padding = 8, .context = 100});
  const auto refused = [&](auto&& change) {
    Request request = greedy(words(10, 1), 5);
    change(request);
    const auto handle = served->submit(request, [](Output) {});
    EXPECT_FALSE(handle);
    return handle ? SubmitError{} : handle.error();
  };
  EXPECT_EQ(refused([](Request& r) { r.prompt.clear(); }).field, "prompt");
  EXPECT_EQ(refused([](Request& r) { r.prompt[3] = kVocabulary; }).field, "prompt") << "padding is no token";
  EXPECT_EQ(refused([](Request& r) { r.prompt[3] = -1; }).field, "prompt");
  EXPECT_EQ(refused([](Request& r) { r.prediction = {100000}; }).field, "prediction");
  EXPECT_EQ(refused([](Request& r) { r.stop_tokens = {100000}; }).field, "stop_tokens");
  EXPECT_EQ(refused([](Request& r) { r.max_tokens = 0; }).field, "max_tokens");
  EXPECT_EQ(refused([](Request& r) { r.min_tokens = 6; }).field, "min_tokens");
  EXPECT_EQ(refused([](Request& r) { r.n = 0; }).field, "n");
  EXPECT_EQ(refused([](Request& r) { r.n = 100000; }).field, "n");
  EXPECT_EQ(refused([](Request& r) { r.priority = 101; }).field, "priority");
  EXPECT_EQ(refused([](Request& r) { r.pin_ttl = std::chrono::milliseconds(-1); }).field, "pin_ttl");
  EXPECT_EQ(refused([](Request& r) { r.stop_strings = {""}; }).field, "stop");
  EXPECT_EQ(refused([](Request& r) { r.sampling.top_p = 0.0F; }).field, "top_p");
  EXPECT_EQ(refused([](Request& r) { r.prompt = words(100, 1); }).kind, SubmitError::Kind::too_long);
  EXPECT_EQ(one(*served.engine, greedy(words(10, 1), 5)).tokens.size(), 5U) << "and it goes on serving";
}

// More than the KV memory but within the context: an answer at once, and the next request is served.
TEST(EngineTest, WhatCanNeverFitIsRefusedAtOnce) {
  const Served served = serve(8, {.block_size = 4});
  const auto prompt = served->submit(greedy(words(33, 1), 5), [](Output) {});
  ASSERT_FALSE(prompt);
  EXPECT_EQ(prompt.error().kind, SubmitError::Kind::never_fits);
  const auto output = served->submit(greedy(words(10, 1), 30), [](Output) {});
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().kind, SubmitError::Kind::never_fits);
  EXPECT_EQ(one(*served.engine, greedy(words(10, 1), 22)).tokens.size(), 22U) << "the largest that fits";
  Request open = greedy(words(10, 1), 1);
  open.max_tokens.reset();
  EXPECT_EQ(one(*served.engine, open).tokens.size(), 22U) << "unset means as much as fits";
}

/// Whether the engine's sampler chooses tokens or the model, as a device does.
class ChoosingTest : public ::testing::TestWithParam<bool> {};

TEST_P(ChoosingTest, NotANumberFailsThatRequestAlone) {
  const Served served = serve(64, {.block_size = 4}, {.vocab = kVocabulary, .padding = 8}, [](testing::FakeModel& model) {
    model.chooses = GetParam();
    model.threads = 2;
    model.on_row = [](std::span<const TokenId> context, std::span<float> row) {
      if (context[0] == 13 && context.size() > 20) row[5] = std::numeric_limits<float>::quiet_NaN();
    };
  });
  auto bad = words(18, 1);
  bad[0] = 13;
  Collector good_one, bad_one;
  const auto good_handle = served->submit(greedy(words(18, 2), 10), good_one.sink());
  const auto bad_handle = served->submit(greedy(bad, 10), bad_one.sink());
  EXPECT_EQ(good_one.wait().samples[0].tokens, served.model->continue_greedily(words(18, 2), 10));
  const auto failed = bad_one.wait().samples[0];
  EXPECT_EQ(failed.finish.reason, FinishReason::error);
  EXPECT_EQ(failed.finish.error, "the model's logits are not finite");
  EXPECT_EQ(failed.tokens.size(), 3U);
  EXPECT_EQ(served->stats().blocks_held, 0);
}

INSTANTIATE_TEST_SUITE_P(By, ChoosingTest, ::testing::Bool(), [](const auto& tested) { return tested.param ? "Model" : "Sampler"; });

TEST(EngineTest, TheModelChoosesWhereARowIsAllThatATokenDependsOn) {
  const EngineOptions options{.block_size = 4, .speculation = Speculation::off};
  const Served sampler = serve(64, options);
  const Served model = serve(64, options, {.vocab = kVocabulary, .padding = 8}, [](testing::FakeModel& fake) { fake.chooses = true; });
  const auto chosen_by_model = [&](const Request& request) {
    const int before = model.model->chosen_rows;
    const auto tokens = one(*model.engine, request).tokens;
    EXPECT_EQ(tokens.size(), 12U);
    EXPECT_EQ(tokens, one(*sampler.engine, request).tokens);
    return model.model->chosen_rows - before;
  };
  const Request plain = sampled(words(9, 1), 12, 5);
  EXPECT_EQ(chosen_by_model(greedy(words(9, 1), 12)), 12);
  EXPECT_EQ(chosen_by_model(plain), 12);
  Request request = plain;
  request.sampling.top_k = 50;
  request.sampling.top_p = 0.8F;
  request.sampling.min_p = 0.01F;
  EXPECT_EQ(chosen_by_model(request), 12);
  request = plain;
  request.sampling.frequency_penalty = 0.5F;
  EXPECT_EQ(chosen_by_model(request), 0);
  request = plain;
  request.sampling.logprobs = true;
  EXPECT_EQ(chosen_by_model(request), 0);
  request = plain;
  request.min_tokens = 5;
  request.stop_tokens = {kEndOfText};
  request.sampling.top_k = 1;  // which is never the end of text in these twelve
  EXPECT_EQ(chosen_by_model(request), 7);
}

TEST(EngineTest, SequencesAreSampledSideBySideOnTheModelsThreads) {
  std::vector<CompletedSample> alone;
  const Served one_thread = serve(64, {.block_size = 4});
  for (std::uint64_t i = 0; i < 6; ++i) alone.push_back(one(*one_thread.engine, sampled(words(9, i), 12, i)));
  EXPECT_EQ(one_thread.model->shared_tasks, 0);
  const Served served = serve(64, {.block_size = 4}, {.vocab = kVocabulary, .padding = 8}, [](testing::FakeModel& model) { model.threads = 3; });
  Request together = sampled(words(9, 1), 12, 1);
  together.n = 6;
  const auto samples = served->generate(together)->samples;
  EXPECT_GE(served.model->shared_tasks, 5);
  EXPECT_EQ(samples[0].tokens, alone[1].tokens);
  for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(one(*served.engine, sampled(words(9, i), 12, i)).tokens, alone[i].tokens);
}

TEST(EngineTest, NoChoiceIsStatedForAModelThatChoosesNone) {
  const Served served = serve(64, {.block_size = 4});
  EXPECT_EQ(one(*served.engine, sampled(words(9, 1), 12, 5)).tokens.size(), 12U);
  EXPECT_EQ(served.model->stated_choices, 0);
}

TEST(EngineTest, AFailingStepFailsThoseInItAndTheEngineLivesOn) {
  std::atomic<bool> failing{false};
  const Served served = serve(64, {.block_size = 4}, {.vocab = kVocabulary, .padding = 8}, [&](testing::FakeModel& model) {
    model.on_forward = [&](const StepInput&) {
      if (failing) throw std::runtime_error("the device is gone");
    };
  });
  one(*served.engine, greedy(words(20, 1), 3));
  failing = true;
  const auto failed = one(*served.engine, greedy(words(30, 2), 3));
  EXPECT_EQ(failed.finish.reason, FinishReason::error);
  EXPECT_EQ(failed.finish.error, "the device is gone");
  failing = false;
  const auto again = one(*served.engine, greedy(words(30, 2), 3));
  EXPECT_EQ(again.tokens, served.model->continue_greedily(words(30, 2), 3));
  EXPECT_EQ(again.finish.usage.cached_tokens, 0) << "nothing of the failed step is reused";
  EXPECT_EQ(one(*served.engine, greedy(words(20, 1), 3)).finish.usage.cached_tokens, 19) << "what was whole still is";
  EXPECT_EQ(served->stats().blocks_held, 0);
}

TEST(EngineTest, ABrokenInvariantEmptiesTheCacheAndTheEngineLivesOn) {
  std::atomic<bool> failing{false};
  const Served served = serve(64, {.block_size = 4}, {.vocab = kVocabulary, .padding = 8}, [&](testing::FakeModel& model) {
    model.on_forward = [&](const StepInput&) {
      if (failing) throw std::logic_error("broken");
    };
  });
  one(*served.engine, greedy(words(20, 1), 3));
  const auto before = served->stats();
  failing = true;
  EXPECT_EQ(one(*served.engine, greedy(words(20, 1), 3)).finish.reason, FinishReason::error);
  failing = false;
  const auto again = one(*served.engine, greedy(words(20, 1), 3));
  EXPECT_EQ(again.tokens, served.model->continue_greedily(words(20, 1), 3));
  EXPECT_EQ(again.finish.usage.cached_tokens, 0);
  EXPECT_GE(served->stats().prefix_query_tokens, before.prefix_query_tokens) << "counters go on";
}

TEST(EngineTest, OptionsOutOfRangeAreNamed) {
  const auto refused = [](EngineOptions options, testing::FakeModel::Shape shape = {.vocab = kVocabulary, .padding = 0}) {
    auto engine = Engine::create(std::make_unique<testing::FakeModel>(shape), testing::test_tokenizer(), options);
    EXPECT_FALSE(engine);
    return engine ? std::string() : engine.error().field;
  };
  EXPECT_EQ(refused({.block_size = 0}), "block_size");
  EXPECT_EQ(refused({.max_running = 0}), "max_running");
  EXPECT_EQ(refused({.max_step_tokens = 0}), "max_step_tokens");
  EXPECT_EQ(refused({.kv_memory_bytes = 10}), "kv_memory_bytes");
  EXPECT_EQ(refused({.kv_memory_fraction = 2.0}), "kv_memory_fraction");
  EXPECT_EQ(refused({.max_pinned_fraction = -1.0}), "max_pinned_fraction");
  EXPECT_EQ(refused({}, {.vocab = 10, .padding = 0}), "tokenizer");
}

TEST(EngineTest, KvMemoryIsTheStatedBudget) {
  const Served served = serve(37, {.block_size = 8});
  const auto stats = served->stats();
  EXPECT_EQ(stats.blocks_total, 37);
  EXPECT_EQ(stats.bytes_per_block, 64U);
  EXPECT_EQ(served->max_sequence_tokens(), 37 * 8);
  EXPECT_GT(available_memory_bytes(), 0U);
}

TEST(EngineTest, MappedWeightsAreNoMemoryForKeysAndValues) {
  class Mapped final : public testing::FakeModel {
   public:
    using testing::FakeModel::FakeModel;
    [[nodiscard]] std::size_t mapped_weight_bytes() const override { return ~std::size_t{0}; }
  };
  auto model = std::make_unique<Mapped>(testing::FakeModel::Shape{.vocab = kVocabulary, .padding = 8});
  const auto engine = Engine::create(std::move(model), testing::test_tokenizer(), {});
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().field, "kv_memory_bytes");
}

TEST(EngineTest, StatsAddUp) {
  const Served served = serve(64, {.block_size = 4});
  for (std::uint64_t i = 0; i < 5; ++i) one(*served.engine, greedy(words(20, 1), 6));
  const auto stats = served->stats();
  EXPECT_EQ(stats.blocks_free + stats.blocks_cached + stats.blocks_held, stats.blocks_total);
  EXPECT_EQ(stats.requests_submitted, 5U);
  EXPECT_EQ(stats.prefix_query_tokens, 5U * 20U);
  EXPECT_EQ(stats.prefix_hit_tokens, 4U * 19U);
  EXPECT_EQ(stats.prompt_tokens, stats.prefix_query_tokens);
  EXPECT_EQ(stats.generated_tokens, 30U);
  EXPECT_EQ(std::accumulate(stats.step_times.begin(), stats.step_times.end(), std::uint64_t{0}), stats.steps);
  EXPECT_EQ(stats.all_steps.tokens, 20U + 4U + 5U * 5U);
  EXPECT_EQ(stats.all_steps.weight_bytes, stats.steps * 4096U);
  EXPECT_GT(stats.all_steps.flops, 0U);
  EXPECT_EQ(stats.watchdog_trips, 0U);
}

}  // namespace
}  // namespace fixpoint::engine
