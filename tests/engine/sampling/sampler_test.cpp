#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "engine/counter_rng.h"
#include "engine/detail/logit_scan.h"
#include "tests/kernels/plain_choice.h"

namespace fixpoint::engine {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::size_t n, unsigned seed, float spread = 3.0F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

/// The documented order, plainly: sort, loops, doubles.
std::map<TokenId, double> plain_distribution(std::vector<float> logits, const SamplingParams& params, const TokenHistory& history) {
  for (const auto& [token, bias] : params.logit_bias) logits[static_cast<std::size_t>(token)] += bias;
  for (const auto& [token, count] : history.counts()) {
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    if (count.in_output > 0) logit -= params.presence_penalty + params.frequency_penalty * static_cast<float>(count.in_output);
  }
  std::vector<std::pair<double, TokenId>> order;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    order.emplace_back(-static_cast<double>(logits[i]) / static_cast<double>(params.temperature), static_cast<TokenId>(i));
  }
  std::sort(order.begin(), order.end());
  const double best = order.front().first;
  std::vector<double> weights;
  for (const auto& [negative, token] : order) weights.push_back(std::exp(best - negative));
  std::size_t kept = weights.size();
  while (kept > 1 && weights[kept - 1] < static_cast<double>(params.min_p)) --kept;
  if (params.top_k > 0) kept = std::min(kept, static_cast<std::size_t>(params.top_k));
  double total = std::accumulate(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(kept), 0.0);
  if (params.top_p < 1.0F) {
    const double mass = total * static_cast<double>(params.top_p);
    double sum = 0.0;
    std::size_t n = 0;
    while (n < kept && sum < mass) sum += weights[n++];
    kept = n;
    total = sum;
  }
  std::map<TokenId, double> result;
  for (std::size_t i = 0; i < kept; ++i) result[order[i].second] = weights[i] / total;
  return result;
}

TokenId sample(Sampler& sampler, std::span<const float> logits, const SamplingParams& params, std::uint64_t seed = 1,
               std::uint64_t position = 0, std::uint32_t index = 0) {
  const auto chosen = sampler.sample(logits, {.params = &params, .seed = seed, .sample = index, .position = position});
  EXPECT_TRUE(chosen) << (chosen ? "" : chosen.error());
  return chosen ? chosen->token : -1;
}

// Known answers of the Random123 distribution.
TEST(CounterRngTest, PhiloxGivesThePublishedNumbers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRngTest, EachArgumentMatters) {
  std::set<double> seen;
  for (std::uint64_t seed : {1ULL, 2ULL, 1ULL << 40U}) {
    for (std::uint32_t index : {0U, 1U}) {
      for (std::uint64_t position : {0ULL, 1ULL, 1ULL << 40U}) {
        for (const Purpose purpose : {Purpose::token, Purpose::acceptance, Purpose::residual}) {
          seen.insert(uniform(seed, index, position, purpose));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 3U * 2U * 3U * 3U);
}

TEST(CounterRngTest, NumbersAreSpreadEvenly) {
  std::array<int, 20> buckets{};
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const double u = uniform(7, 0, i, Purpose::token);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++buckets[static_cast<std::size_t>(u * 20.0)];
  }
  double chi_square = 0.0;
  for (const int n : buckets) chi_square += (n - 1000.0) * (n - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 43.8) << "19 degrees of freedom, p = 0.001";
}

TEST(LogitScanTest, ExponentialIsExactToAFewUnits) {
  std::vector<float> logits{0.0F, -28.0F, -1000.0F, -3e38F, -infinity};
  const std::size_t special = logits.size();
  for (int i = 0; i < 28000; ++i) logits.push_back(-static_cast<float>(i) * 0.001F);
  std::vector<float> weights(logits.size());
  std::vector<std::uint64_t> sums;
  detail::exponentiate(logits, 0.0F, 1.0F, weights, sums);
  EXPECT_EQ(weights[0], 1.0F);
  for (std::size_t i = 1; i < special; ++i) EXPECT_EQ(weights[i], 0.0F) << logits[i];
  for (std::size_t i = special; i < logits.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(weights[i]) / std::exp(static_cast<double>(logits[i])), 1.0, 3e-7) << logits[i];
  }
}

TEST(LogitScanTest, WeightsAreTheSameByBlocksAndOneByOne) {
  for (const std::size_t n : {1U, 15U, 16U, 127U, 128U, 300U, 1000U}) {
    const auto logits = random_logits(n, 5, 6.0F);
    const float max = *std::max_element(logits.begin(), logits.end());
    std::vector<float> weights(n);
    std::vector<std::uint64_t> sums;
    const std::uint64_t total = detail::exponentiate(logits, max, 1.3F, weights, sums);
    std::vector<std::uint64_t> expected(sums.size());
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t weight = detail::token_weight(logits[i], max, 1.3F);
      ASSERT_EQ(kernels::fixed_point(weights[i]), weight);
      expected[i / detail::scan_block] += weight;
    }
    EXPECT_EQ(sums, expected);
    EXPECT_EQ(total, std::accumulate(expected.begin(), expected.end(), std::uint64_t{0}));
  }
}

// A build whose weights differ gives other tokens for the same seed: it contracts products and sums, or rounds otherwise.
TEST(LogitScanTest, WeightsAreTheseBitsInEveryBuild) {
  std::uint64_t hash = 0;
  for (int i = 0; i < 30000; ++i) hash = mix64(hash ^ detail::token_weight(-static_cast<float>(i) * 0.001F, 0.0F, 1.0F));
  EXPECT_EQ(detail::token_weight(2.5F, 2.5F, 3.0F), std::uint64_t{1} << 40U);
  EXPECT_EQ(hash, 0xf2c9fe2cbc687672U);
}

TEST(LogitScanTest, MaximumIsTheFirstOfTheHighestAtEveryPlace) {
  std::vector<float> block_max;
  for (const std::size_t n : {1U, 7U, 16U, 127U, 128U, 129U, 1000U}) {
    for (std::size_t i = 0; i < n; i += 1 + n / 50) {
      auto logits = random_logits(n, 1);
      logits[i] = 100.0F;
      logits[n - 1] = 100.0F;
      const auto found = detail::find_maximum(logits, block_max);
      ASSERT_TRUE(found.valid);
      ASSERT_EQ(found.index, i);
    }
  }
}

TEST(SamplerTest, GreedyTakesTheLikeliestAndTheLowestOfEquals) {
  Sampler sampler(300);
  auto logits = random_logits(300, 1);
  logits[123] = logits[250] = 50.0F;
  EXPECT_EQ(sample(sampler, logits, {.temperature = 0.0F}), 123);
}

TEST(SamplerTest, PaddingAboveTheVocabularyIsNeverChosen) {
  Sampler sampler(100);
  auto logits = random_logits(128, 1);
  for (std::size_t i = 100; i < 128; ++i) logits[i] = 1000.0F;
  EXPECT_LT(sample(sampler, logits, {.temperature = 0.0F}), 100);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_LT(sample(sampler, logits, {.temperature = 2.0F}, seed), 100);
    EXPECT_LT(sample(sampler, logits, {.temperature = 2.0F, .top_k = 5}, seed), 100);
    EXPECT_LT(sample(sampler, logits, {.temperature = 2.0F, .top_p = 0.9F}, seed), 100);
  }
  // Padding may even be NaN: nobody looks at it.
  logits[110] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_LT(sample(sampler, logits, {.temperature = 0.0F}), 100);
}

TEST(SamplerTest, NotANumberIsAnErrorWhereverItIs) {
  Sampler sampler(300);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity}) {
    for (std::size_t i = 0; i < 300; i += 13) {
      auto logits = random_logits(300, 1);
      logits[i] = bad;
      for (const float temperature : {0.0F, 1.0F}) {
        const SamplingParams params{.temperature = temperature};
        EXPECT_FALSE(sampler.sample(logits, {.params = &params}));
      }
    }
  }
  const SamplingParams params{};
  EXPECT_FALSE(sampler.sample(std::vector<float>(300, -infinity), {.params = &params}));
}

TEST(SamplerTest, ForbiddenTokensAreNotChosen) {
  Sampler sampler(4);
  const std::vector<float> logits{5.0F, 4.0F, 3.0F, 2.0F};
  const SamplingParams greedy{.temperature = 0.0F};
  const std::vector<TokenId> forbidden{0, 1};
  EXPECT_EQ(sampler.sample(logits, {.params = &greedy, .forbidden = forbidden})->token, 2);
  const std::vector<TokenId> all{0, 1, 2, 3};
  EXPECT_FALSE(sampler.sample(logits, {.params = &greedy, .forbidden = all})) << "nothing is left";
}

TEST(SamplerTest, DistributionsAgreeWithThePlainComputation) {
  constexpr std::size_t n = 500;
  Sampler sampler(n);
  std::mt19937 random(5);
  const auto pick = [&](auto... values) {
    const std::array options{values...};
    return options[random() % options.size()];
  };
  for (unsigned round = 0; round < 400; ++round) {
    SamplingParams params{.temperature = pick(0.1F, 0.7F, 1.0F, 1.8F),
                          .top_k = pick(0, 0, 1, 7, 40, 499, 1000),
                          .top_p = pick(1.0F, 1.0F, 0.95F, 0.5F, 0.01F),
                          .min_p = pick(0.0F, 0.0F, 0.05F, 0.5F, 1.0F),
                          .repetition_penalty = pick(1.0F, 1.3F),
                          .presence_penalty = pick(0.0F, 0.8F),
                          .frequency_penalty = pick(0.0F, 0.4F)};
    if (round % 3 == 0) params.logit_bias = {{static_cast<TokenId>(random() % n), 4.0F}, {3, -infinity}};
    TokenHistory history;
    history.add_prompt(std::vector<TokenId>{1, 2, 3, static_cast<TokenId>(random() % n)});
    for (int i = 0; i < 6; ++i) history.add_output(static_cast<TokenId>(random() % 10));
    const auto logits = random_logits(n, round, pick(0.1F, 2.0F, 6.0F));

    const auto got = sampler.distribution(logits, {.params = &params, .history = &history});
    ASSERT_TRUE(got);
    const auto expected = plain_distribution(logits, params, history);
    double difference = 0.0;
    for (const auto& [token, probability] : *got) {
      const auto found = expected.find(token);
      difference += std::abs(static_cast<double>(probability) - (found == expected.end() ? 0.0 : found->second));
    }
    ASSERT_LT(difference, 1e-4) << "round " << round;
    double total = 0.0;
    for (const auto& p : *got) total += static_cast<double>(p.probability);
    ASSERT_NEAR(total, 1.0, 1e-4);
    // Tokens of nearly no weight may fall on either side of a cut; no others.
    for (const auto& [token, probability] : expected) {
      if (probability < 1e-6) continue;
      ASSERT_TRUE(std::any_of(got->begin(), got->end(), [t = token](const auto& p) { return p.token == t; })) << "round " << round;
    }
  }
}

TEST(SamplerTest, ChoosesExactlyAsAPlainWalkOverWhatIsKept) {
  std::mt19937 random(11);
  const auto pick = [&](auto... values) {
    const std::array all{values...};
    return all[random() % all.size()];
  };
  for (unsigned round = 0; round < 600; ++round) {
    const auto n = static_cast<std::size_t>(pick(1, 2, 37, 128, 300, 1000));
    auto logits = random_logits(n, round, pick(0.1F, 1.5F, 6.0F));
    if (round % 3 == 0) {  // many equals, zeros of both signs among them
      for (float& logit : logits) logit = std::round(2.0F * logit) / 2.0F;
    }
    if (round % 4 == 0 && n > 1) {
      for (std::size_t i = 0; i < n; i += 3) logits[(i + round) % n] = -infinity;
      logits[round % n] = 1.0F;
    }
    const SamplingParams params{.temperature = pick(0.0F, 1e-4F, 0.3F, 1.0F, 5.0F, 1000.0F),
                                .top_k = pick(0, 0, 1, 2, 40, static_cast<int>(n) - 1, static_cast<int>(n), static_cast<int>(n) + 5),
                                .top_p = pick(1.0F, 1.0F, 1e-6F, 0.3F, 0.95F, 0.99999994F),
                                .min_p = pick(0.0F, 0.0F, 0.001F, 0.2F, 1.0F)};
    Sampler sampler(static_cast<std::int64_t>(n));
    for (std::uint64_t position = 0; position < 5; ++position) {
      const SamplePoint point{.params = &params, .seed = round, .position = position};
      const auto choice = sampler.row_choice(point);
      ASSERT_TRUE(choice);
      ASSERT_EQ(sampler.sample(logits, point)->token, kernels::plain_choice(logits, *choice, detail::token_weight))
          << "round " << round << ", " << n << " tokens";
      ASSERT_EQ(sampler.choose(logits, *choice), sampler.sample(logits, point)->token);
    }
  }
}

TEST(SamplerTest, ARowThatIsNotFiniteHasNoChoice) {
  Sampler sampler(3);
  for (const float temperature : {0.0F, 1.0F}) {
    const SamplingParams params{.temperature = temperature};
    const auto choice = *sampler.row_choice({.params = &params});
    EXPECT_LT(sampler.choose(std::array{1.0F, std::nanf(""), 2.0F}, choice), 0);
    EXPECT_LT(sampler.choose(std::array{1.0F, infinity, 2.0F}, choice), 0);
    EXPECT_LT(sampler.choose(std::array{-infinity, -infinity, -infinity, 5.0F}, choice), 0) << "the fourth is padding";
    EXPECT_EQ(sampler.choose(std::array{-infinity, 1.0F, -infinity, 5.0F}, choice), 1);
  }
}

TEST(SamplerTest, WhatDependsOnMoreThanTheRowIsNoRowChoice) {
  const Sampler sampler(100);
  const std::vector<TokenId> stop{3};
  const auto is_row_choice = [&](const SamplingParams& params, std::span<const TokenId> forbidden = {}) {
    return sampler.row_choice({.params = &params, .forbidden = forbidden}).has_value();
  };
  EXPECT_TRUE(is_row_choice({.temperature = 0.0F}));
  EXPECT_TRUE(is_row_choice({.temperature = 0.7F, .top_k = 5, .top_p = 0.5F, .min_p = 0.1F}));
  EXPECT_FALSE(is_row_choice({}, stop));
  EXPECT_FALSE(is_row_choice({.repetition_penalty = 1.1F}));
  EXPECT_FALSE(is_row_choice({.presence_penalty = 0.5F}));
  EXPECT_FALSE(is_row_choice({.frequency_penalty = 0.5F}));
  EXPECT_FALSE(is_row_choice({.logit_bias = {{1, 1.0F}}}));
  EXPECT_FALSE(is_row_choice({.logprobs = true}));
}

TEST(SamplerTest, DrawsFollowTheDistribution) {
  constexpr std::size_t n = 200;
  Sampler sampler(n);
  const auto logits = random_logits(n, 3, 1.5F);
  for (const SamplingParams& params : {SamplingParams{.temperature = 1.0F}, SamplingParams{.temperature = 0.8F, .top_k = 20},
                                       SamplingParams{.temperature = 1.2F, .top_p = 0.8F}, SamplingParams{.min_p = 0.1F}}) {
    const auto distribution = *sampler.distribution(logits, {.params = &params});
    std::map<TokenId, int> counts;
    constexpr int draws = 20000;
    for (std::uint64_t i = 0; i < draws; ++i) ++counts[sample(sampler, logits, params, 9, i)];
    double chi_square = 0.0;
    int cells = 0;
    for (const auto& [token, probability] : distribution) {
      const double expected = static_cast<double>(probability) * draws;
      if (expected < 5.0) continue;
      chi_square += (counts[token] - expected) * (counts[token] - expected) / expected;
      ++cells;
    }
    // Mean k, variance 2k; the draws are fixed by the seed, so this never varies.
    EXPECT_LT(chi_square, cells + 4.0 * std::sqrt(2.0 * cells));
    for (const auto& [token, count] : counts) {
      EXPECT_TRUE(std::any_of(distribution.begin(), distribution.end(), [t = token](const auto& p) { return p.token == t; }));
    }
  }
}

TEST(SamplerTest, TheChoiceDependsOnSeedSampleAndPositionAlone) {
  constexpr std::size_t n = 1000;
  Sampler used(n), fresh(n);
  const auto logits = random_logits(n, 1, 1.0F);
  const SamplingParams params{.temperature = 1.0F};
  for (std::uint64_t position = 0; position < 50; ++position) {
    // Other requests in between change nothing.
    sample(used, random_logits(n, 99), {.temperature = 0.5F, .top_k = 3}, 1234, position);
    EXPECT_EQ(sample(used, logits, params, 42, position), sample(fresh, logits, params, 42, position));
  }
  std::set<TokenId> by_seed, by_sample, by_position;
  for (std::uint32_t i = 0; i < 20; ++i) {
    by_seed.insert(sample(fresh, logits, params, i));
    by_sample.insert(sample(fresh, logits, params, 1, 0, i));
    by_position.insert(sample(fresh, logits, params, 1, i));
  }
  EXPECT_GT(by_seed.size(), 10U);
  EXPECT_GT(by_sample.size(), 10U);
  EXPECT_GT(by_position.size(), 10U);
}

TEST(SamplerTest, LogprobsAreOfTheRawLogits) {
  constexpr std::size_t n = 400;
  Sampler sampler(n);
  const auto logits = random_logits(n, 8);
  SamplingParams params{.temperature = 0.5F, .top_k = 3, .logit_bias = {{0, 2.0F}}, .logprobs = true, .top_logprobs = 5};
  const auto chosen = sampler.sample(logits, {.params = &params, .seed = 3});
  ASSERT_TRUE(chosen);
  double total = 0.0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  const auto logprob = [&](TokenId token) { return static_cast<double>(logits[static_cast<std::size_t>(token)]) - std::log(total); };
  EXPECT_EQ(chosen->logprobs.chosen.token, chosen->token);
  EXPECT_NEAR(static_cast<double>(chosen->logprobs.chosen.logprob), logprob(chosen->token), 1e-5);
  ASSERT_EQ(chosen->logprobs.top.size(), 5U);
  std::vector<TokenId> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)]; });
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(chosen->logprobs.top[i].token, order[i]);
    EXPECT_NEAR(static_cast<double>(chosen->logprobs.top[i].logprob), logprob(order[i]), 1e-5);
  }
}

TEST(SamplerTest, PenaltiesCountPromptAndOutputAsDocumented) {
  Sampler sampler(4);
  const std::vector<float> logits{2.0F, 1.9F, -1.0F, 0.0F};
  TokenHistory history;
  history.add_prompt(std::vector<TokenId>{0});
  const SamplingParams repetition{.temperature = 0.0F, .repetition_penalty = 1.5F};
  EXPECT_EQ(sampler.sample(logits, {.params = &repetition, .history = &history})->token, 1) << "the prompt counts";
  const SamplingParams presence{.temperature = 0.0F, .presence_penalty = 1.0F};
  EXPECT_EQ(sampler.sample(logits, {.params = &presence, .history = &history})->token, 0) << "the prompt doesn't count";
  history.add_output(0);
  EXPECT_EQ(sampler.sample(logits, {.params = &presence, .history = &history})->token, 1);
  const SamplingParams frequency{.temperature = 0.0F, .frequency_penalty = 0.06F};
  EXPECT_EQ(sampler.sample(logits, {.params = &frequency, .history = &history})->token, 0);
  history.add_output(0);
  EXPECT_EQ(sampler.sample(logits, {.params = &frequency, .history = &history})->token, 1) << "twice is more than once";
}

TEST(SamplerTest, TinyTemperaturesAreGreedy) {
  Sampler sampler(300);
  const auto logits = random_logits(300, 4);
  const TokenId best = sample(sampler, logits, {.temperature = 0.0F});
  for (const float temperature : {1e-45F, 1e-20F, 1e-6F, 1e-4F}) EXPECT_EQ(sample(sampler, logits, {.temperature = temperature}, 77), best);
}

TEST(SamplerTest, ARealVocabularyWithFlatLogitsIsSampledWithEveryFilter) {
  constexpr std::size_t n = 152064;
  Sampler sampler(n);
  const std::vector<float> flat(n, 1.0F);
  for (const SamplingParams& params : {SamplingParams{}, SamplingParams{.top_k = 50}, SamplingParams{.top_p = 0.9F}, SamplingParams{.min_p = 0.1F}}) {
    std::set<TokenId> seen;
    for (std::uint64_t i = 0; i < 5; ++i) seen.insert(sample(sampler, flat, params, 3, i));
    EXPECT_GE(seen.size(), 4U);
  }
  const SamplingParams top_k{.top_k = 50};
  EXPECT_EQ(sampler.distribution(flat, {.params = &top_k})->back().token, 49) << "of equals, the lowest ids";
}

TEST(SamplingParamsTest, EveryFieldOutOfRangeIsNamed) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<SamplingParams, std::string>> cases = {
      {{.temperature = -1.0F}, "temperature"},       {{.temperature = nan}, "temperature"},
      {{.top_k = -1}, "top_k"},                      {{.top_p = 0.0F}, "top_p"},
      {{.top_p = 1.5F}, "top_p"},                    {{.top_p = nan}, "top_p"},
      {{.min_p = -0.1F}, "min_p"},                   {{.repetition_penalty = 0.0F}, "repetition_penalty"},
      {{.presence_penalty = nan}, "presence_penalty"}, {{.frequency_penalty = 1e9F}, "frequency_penalty"},
      {{.logit_bias = {{100, 1.0F}}}, "logit_bias"}, {{.logit_bias = {{-1, 1.0F}}}, "logit_bias"},
      {{.logit_bias = {{1, nan}}}, "logit_bias"},    {{.top_logprobs = 21}, "top_logprobs"}};
  for (const auto& [params, field] : cases) {
    const auto error = check(params, 100);
    ASSERT_TRUE(error) << field;
    EXPECT_EQ(error->field, field);
    EXPECT_EQ(error->kind, SubmitError::Kind::invalid);
  }
  EXPECT_FALSE(check(SamplingParams{}, 100));
}

}  // namespace
}  // namespace fixpoint::engine
