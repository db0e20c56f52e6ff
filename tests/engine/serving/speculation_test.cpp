#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/sampler.h"
#include "tests/engine/serving/random_requests.h"
#include "tests/engine/serving/served.h"

namespace fixpoint::engine {
namespace {

using testing::Collector;
using testing::expect_same;
using testing::greedy;
using testing::kEndOfText;
using testing::kVocabulary;
using testing::random_requests;
using testing::sampled;
using testing::serve;
using testing::Served;
using testing::words;

/// What becomes of a draft of the right tokens before it is handed over.
using Corrupt = std::function<void(std::vector<TokenId>& draft)>;

/// Knows what the model will write, from a run without speculation, and spoils it.
class OracleDrafter final : public Drafter {
 public:
  OracleDrafter(std::size_t prompt_tokens, const Completion& truth, Corrupt corrupt)
      : prompt_tokens_(prompt_tokens), truth_(&truth), corrupt_(std::move(corrupt)) {}

  int read(std::span<const TokenId>, int) override { return 0; }
  Draft propose(std::span<const TokenId> text, int) override {
    const auto output = text.subspan(prompt_tokens_);
    Draft draft{.source = DraftSource::previous_attempt, .matched = 1, .tokens = {}};
    for (const CompletedSample& sample : truth_->samples) {
      if (sample.tokens.size() < output.size() || !std::equal(output.begin(), output.end(), sample.tokens.begin())) continue;
      draft.tokens.assign(sample.tokens.begin() + static_cast<std::ptrdiff_t>(output.size()), sample.tokens.end());
      break;
    }
    corrupt_(draft.tokens);
    return draft;
  }

 private:
  std::size_t prompt_tokens_;
  const Completion* truth_;
  Corrupt corrupt_;
};

/// Options whose drafts come from `truth`, by the number that is the request's session.
EngineOptions with_oracle(EngineOptions options, const std::vector<Completion>& truth, Corrupt corrupt) {
  options.speculation = Speculation::always;
  options.drafter = [&truth, corrupt = std::move(corrupt)](const Request& request) -> std::unique_ptr<Drafter> {
    return std::make_unique<OracleDrafter>(request.prompt.size(), truth.at(std::stoul(request.session)), corrupt);
  };
  return options;
}

/// Right up to the `right`-th token, wrong there, right again after.
Corrupt wrong_at(std::size_t right) {
  return [right](std::vector<TokenId>& draft) {
    if (right < draft.size()) draft[right] = (draft[right] + 1) % kEndOfText;
  };
}

/// Another way to be wrong each time.
Corrupt adversary(unsigned seed) {
  return [shared = std::make_shared<std::mt19937>(seed)](std::vector<TokenId>& draft) {  // all drafters are asked on one thread
    std::mt19937& random = *shared;
    const std::size_t place = random() % 10;
    if (place < draft.size()) draft.resize(std::max(draft.size(), place + random() % 4), 0);
    switch (random() % 7) {
      case 0: draft = words(static_cast<int>(random() % 300), random()); break;                     // nonsense, longer than any budget
      case 1: draft.insert(draft.begin(), static_cast<TokenId>(random() % kVocabulary)); break;     // off by one from the start
      case 2: draft.clear(); break;
      case 3: draft.insert(draft.begin() + static_cast<std::ptrdiff_t>(std::min(place, draft.size())), kEndOfText); break;
      case 4: draft.insert(draft.begin() + static_cast<std::ptrdiff_t>(std::min(place, draft.size())), random() % 2 == 0 ? -1 : 1'000'000); break;
      default:
        if (place < draft.size()) draft[place] = static_cast<TokenId>(random() % kVocabulary);
    }
  };
}

void number(std::vector<Request>& requests) {
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].session = std::to_string(i);
}

std::vector<Completion> answer_alone(const std::vector<Request>& requests, int blocks = 200) {
  std::vector<Completion> answers;
  const Served plain = serve(blocks, {.block_size = 16, .speculation = Speculation::off});
  for (Request request : requests) {
    request.tenant = "alone";
    answers.push_back(*plain->generate(request));
  }
  return answers;
}

/// In groups of `together`.
void expect_same_answers(Engine& engine, const std::vector<Request>& requests, const std::vector<Completion>& expected, std::size_t together) {
  for (std::size_t from = 0; from < requests.size(); from += together) {
    const std::size_t to = std::min(requests.size(), from + together);
    std::vector<Collector> collectors;
    std::vector<RequestHandle> handles;
    for (std::size_t i = from; i < to; ++i) {
      collectors.emplace_back(requests[i].n);
      auto handle = engine.submit(requests[i], collectors.back().sink());
      ASSERT_TRUE(handle) << handle.error().message();
      handles.push_back(std::move(*handle));
    }
    for (std::size_t i = from; i < to; ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_same(collectors[i - from].wait(), expected[i], "request " + std::to_string(i)));
    }
  }
}

void expect_nothing_leaked(const Engine& engine) {
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.blocks_free + stats.blocks_cached + stats.blocks_held, stats.blocks_total);
  EXPECT_EQ(stats.blocks_held, stats.blocks_pinned);
  EXPECT_EQ(stats.watchdog_trips, 0U);
}

DraftCounts total(const EngineStats& stats) {
  DraftCounts sum;
  for (const DraftCounts& counts : stats.drafts) {
    sum.drafts += counts.drafts;
    sum.draft_tokens += counts.draft_tokens;
    sum.accepted_tokens += counts.accepted_tokens;
  }
  return sum;
}

TEST(SpeculationTest, TenThousandPromptsAreAnsweredTheSameWithAnAdversary) {
  constexpr std::size_t kPrompts = 10'000;
  std::vector<Request> requests;
  for (std::size_t i = 0; i < kPrompts; ++i) {
    const auto prompt = words(1 + static_cast<int>(i % 23), i);
    requests.push_back(i % 2 == 0 ? greedy(prompt, 12) : sampled(prompt, 12, i));
    requests.back().ignore_eos = i % 4 < 2;
  }
  number(requests);
  const auto expected = answer_alone(requests, 1'000);
  const Served served = serve(1'000, with_oracle({.block_size = 4, .max_running = 32, .max_step_tokens = 256}, expected, adversary(1)));
  ASSERT_NO_FATAL_FAILURE(expect_same_answers(*served.engine, requests, expected, 32));
  const DraftCounts counts = total(served->stats());
  EXPECT_GT(counts.accepted_tokens, 20'000U);
  EXPECT_GT(counts.draft_tokens, counts.accepted_tokens + 20'000U);
  expect_nothing_leaked(*served.engine);
}

TEST(SpeculationTest, ADraftThatIsWrongAtAnyOnePositionChangesNothing) {
  std::mt19937 random(7);
  auto requests = random_requests(random, 60);
  number(requests);
  const auto expected = answer_alone(requests);
  for (std::size_t right = 0; right <= 16; ++right) {
    const Served served = serve(200, with_oracle({.block_size = 4, .max_running = 16, .max_step_tokens = 128}, expected, wrong_at(right)));
    ASSERT_NO_FATAL_FAILURE(expect_same_answers(*served.engine, requests, expected, 12)) << "wrong at " << right;
    expect_nothing_leaked(*served.engine);
  }
}

/// Penalties, filters, logprobs, stop strings, min_tokens, n > 1, priorities and pins, in memory that is too small for all.
class SpeculatedMixTest : public ::testing::TestWithParam<unsigned> {};

TEST_P(SpeculatedMixTest, AnswersDoNotDependOnDraftsPreemptionOrChunks) {
  std::mt19937 random(GetParam() + 500);
  auto requests = random_requests(random, 10);
  number(requests);
  const auto expected = answer_alone(requests);
  for (int mix = 0; mix < 3; ++mix) {
    const int block_size = 1 + static_cast<int>(random() % 8);
    const int most = 56 + 12 + 16;  // tokens of the longest
    const EngineOptions limits{.block_size = block_size,
                               .max_running = 1 + static_cast<int>(random() % 8),
                               .max_step_tokens = 1 + static_cast<int>(random() % 60),
                               .ageing_steps = 1 + static_cast<int>(random() % 30)};
    const Served served = serve(most / block_size + 1 + static_cast<int>(random() % 10), with_oracle(limits, expected, adversary(random())),
                                {.vocab = kVocabulary, .padding = 8}, [mix](testing::FakeModel& model) {
                                  model.chooses = mix == 1;
                                  model.threads = mix == 2 && GetParam() % 8 == 0 ? 3 : 1;
                                });
    for (int round = 0; round < 2; ++round) {
      ASSERT_NO_FATAL_FAILURE(expect_same_answers(*served.engine, requests, expected, requests.size())) << "mix " << mix;
    }
    expect_nothing_leaked(*served.engine);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SpeculatedMixTest, ::testing::Range(0U, 60U));

/// The engine's own drafter, with predictions that are mostly right.
class OwnDrafterTest : public ::testing::TestWithParam<Speculation> {};

TEST_P(OwnDrafterTest, PredictionsChangeNoAnswer) {
  std::mt19937 random(9);
  auto requests = random_requests(random, 80);
  const auto expected = answer_alone(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prediction = expected[i].samples.back().tokens;
    for (TokenId& token : requests[i].prediction) token = random() % 10 == 0 ? static_cast<TokenId>(random() % kVocabulary) : token;
    if (random() % 8 == 0) requests[i].prediction = words(50, random());
  }
  const Served served = serve(60, {.block_size = 4, .max_running = 6, .max_step_tokens = 64, .speculation = GetParam()});
  for (int round = 0; round < 3; ++round) ASSERT_NO_FATAL_FAILURE(expect_same_answers(*served.engine, requests, expected, 10));
  expect_nothing_leaked(*served.engine);
  if (GetParam() == Speculation::off) { EXPECT_EQ(total(served->stats()).drafts, 0U); }
  if (GetParam() == Speculation::always) {
    EXPECT_GT(served->stats().drafts[static_cast<std::size_t>(DraftSource::previous_attempt)].accepted_tokens, 500U);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, OwnDrafterTest, ::testing::Values(Speculation::off, Speculation::measured, Speculation::always));

TEST(SpeculationTest, RightDraftsComeInOneStepAndOneOutput) {
  std::vector<Request> requests{greedy(words(5, 1), 12)};
  number(requests);
  const auto expected = answer_alone(requests);
  const Served served = serve(50, with_oracle({}, expected, [](std::vector<TokenId>&) {}));
  Collector collector;
  const auto handle = served->submit(requests[0], collector.sink());
  ASSERT_NO_FATAL_FAILURE(expect_same(collector.wait(), expected[0], ""));
  EXPECT_EQ(collector.outputs(), 2U) << "one from the prefill, all others from the next step";
  EXPECT_EQ(served->stats().steps, 2U);
  EXPECT_EQ(served->stats().generated_tokens, 12U);
  EXPECT_EQ(total(served->stats()).accepted_tokens, 10U);
  EXPECT_EQ(served->stats().all_steps.tokens, 5U + 11U);
}

TEST(SpeculationTest, WhatEndsASampleEndsItInTheMiddleOfADraft) {
  const auto prompt = words(6, 2);
  const Request plain = greedy(prompt, 16);
  const CompletedSample whole = answer_alone({plain})[0].samples[0];
  std::vector<Request> requests;
  for (std::size_t i = 1; i < whole.tokens.size(); ++i) {
    Request stop_token = plain, length = plain, stop_text = plain;
    stop_token.stop_tokens = {whole.tokens[i]};
    length.max_tokens = static_cast<int>(i);
    if (whole.text.size() > 2 * i) stop_text.stop_strings = {whole.text.substr(2 * i, 2), "never"};
    for (const Request& request : {stop_token, length, stop_text}) requests.push_back(request);
  }
  number(requests);
  const auto expected = answer_alone(requests);
  // The drafts go on behind the end: they are those of the request without one.
  const std::vector<Completion> endless(requests.size(), Completion{{whole}});
  const Served served = serve(50, with_oracle({.block_size = 4}, endless, [](std::vector<TokenId>&) {}));
  ASSERT_NO_FATAL_FAILURE(expect_same_answers(*served.engine, requests, expected, 1));
  expect_nothing_leaked(*served.engine);
}

TEST(SpeculationTest, ABlockThatOnlyADroppedTailReachedIsNotCached) {
  // The stop token comes early in a draft that reaches blocks further.
  std::vector<Request> requests{greedy(words(6, 2), 40)};
  number(requests);
  const auto whole = answer_alone(requests);
  Request stopped = requests[0];
  stopped.stop_tokens = {whole[0].samples[0].tokens[4]};
  const Served served = serve(50, with_oracle({.block_size = 4}, whole, [](std::vector<TokenId>&) {}));
  const auto answer = served->generate(stopped)->samples[0];
  std::vector<TokenId> text = stopped.prompt;
  text.insert(text.end(), whole[0].samples[0].tokens.begin(), whole[0].samples[0].tokens.end());
  Request longer = greedy(text, 1);
  longer.session = "0";
  ASSERT_TRUE(served->generate(longer));
  EXPECT_EQ(served->stats().prefix_hit_tokens, stopped.prompt.size() + answer.tokens.size() - 1);
}

TEST(SpeculationTest, PreemptedAtEveryStepASampleIsTheSame) {
  // A more urgent request comes at each step in turn and takes the blocks.
  std::vector<Request> requests{sampled(words(10, 1), 24, 5)};
  requests[0].sampling.repetition_penalty = 1.3F;
  requests[0].sampling.logprobs = true;
  number(requests);
  const auto expected = answer_alone(requests);
  std::uint64_t preemptions = 0;
  for (std::size_t when = 1; when <= 5; ++when) {  // of seven outputs
    const Served served = serve(10, with_oracle({.block_size = 4, .max_running = 4}, expected, wrong_at(3)));
    Collector collector, urgent;
    const auto handle = served->submit(requests[0], collector.sink());
    collector.wait_for_outputs(when);
    Request other = greedy(words(20, when), 8);
    other.priority = 100;
    other.session = "0";
    const auto taking = served->submit(other, urgent.sink());
    ASSERT_NO_FATAL_FAILURE(expect_same(collector.wait(), expected[0], "after " + std::to_string(when)));
    (void)urgent.wait();
    preemptions += served->stats().preemptions;
  }
  EXPECT_GT(preemptions, 0U);
}

TEST(SpeculationTest, DraftsThatMayNotBeChosenAreRefusedAtEachPosition) {
  // Stop tokens before min_tokens and tokens that a bias forbids, drafted everywhere.
  std::vector<Request> requests;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Request request = sampled(words(5, seed), 14, seed);
    request.ignore_eos = false;
    request.min_tokens = 10;
    for (TokenId token = 0; token < 40; ++token) request.sampling.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
    requests.push_back(request);
  }
  number(requests);
  const auto expected = answer_alone(requests);
  for (std::size_t place = 0; place < 14; ++place) {
    for (const TokenId token : {kEndOfText, TokenId{7}}) {
      const auto forbidden = [place, token](std::vector<TokenId>& draft) {
        if (place < draft.size()) draft[place] = token;
      };
      const Served served = serve(100, with_oracle({.block_size = 4}, expected, forbidden));
      ASSERT_NO_FATAL_FAILURE(expect_same_answers(*served.engine, requests, expected, 10));
    }
  }
}

TEST(SpeculationTest, SampledTokensHaveTheModelsDistribution) {
  // Two tokens at temperature 1 of the six likeliest, many times, with the likeliest ones as the draft.
  constexpr int kRounds = 200, kSamples = 64, kLikeliest = 6;
  Request request = sampled(words(8, 3), 2, 0);
  request.sampling.temperature = 1.0F;
  request.sampling.top_k = kLikeliest;
  request.n = kSamples;

  const testing::FakeModel model({.vocab = kVocabulary});
  Sampler sampler(kVocabulary);
  const auto distribution = [&](std::vector<TokenId> text) { return *sampler.distribution(model.logits_after(text), {.params = &request.sampling}); };
  const auto likeliest = [](const std::vector<Sampler::Probability>& all) {
    return std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.probability < b.probability; })->token;
  };
  struct Likeliest final : Drafter {
    std::function<TokenId(std::vector<TokenId>)> after;
    int read(std::span<const TokenId>, int) override { return 0; }
    Draft propose(std::span<const TokenId> text, int) override { return {DraftSource::prompt, 2, {after({text.begin(), text.end()})}}; }
  };
  EngineOptions options{.speculation = Speculation::always};
  options.drafter = [&](const Request&) -> std::unique_ptr<Drafter> {
    auto drafter = std::make_unique<Likeliest>();
    drafter->after = [&](std::vector<TokenId> text) { return likeliest(distribution(std::move(text))); };
    return drafter;
  };
  // The samples share the prefill's step; a draft for the second token needs a third one to be cut off by max_tokens.
  request.max_tokens = 3;
  const Served served = serve(400, options);
  std::map<std::pair<TokenId, TokenId>, int> seen;
  for (int round = 0; round < kRounds; ++round) {
    request.sampling.seed = static_cast<std::uint64_t>(round);
    const Completion completion = *served->generate(request);
    for (const CompletedSample& sample : completion.samples) ++seen[{sample.tokens[1], sample.tokens[2]}];
  }
  EXPECT_GT(total(served->stats()).accepted_tokens, 0U);
  EXPECT_LT(total(served->stats()).accepted_tokens, total(served->stats()).draft_tokens);

  // Of the second and third token, over all first ones.
  std::map<std::pair<TokenId, TokenId>, double> expected;
  for (const auto& first : distribution(request.prompt)) {
    std::vector<TokenId> text = request.prompt;
    text.push_back(first.token);
    for (const auto& second : distribution(text)) {
      text.push_back(second.token);
      for (const auto& third : distribution(text)) {
        expected[{second.token, third.token}] += static_cast<double>(first.probability) * static_cast<double>(second.probability) * static_cast<double>(third.probability);
      }
      text.pop_back();
    }
  }
  double chi_square = 0, rest_seen = 0, rest_expected = 0;
  int cells = 0;
  for (const auto& [tokens, probability] : expected) {
    const double mean = probability * kRounds * kSamples;
    const double count = seen[tokens];
    if (mean < 10) {
      rest_seen += count;
      rest_expected += mean;
      continue;
    }
    chi_square += (count - mean) * (count - mean) / mean;
    ++cells;
  }
  chi_square += rest_expected > 0 ? (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected : 0;
  const double degrees = cells;  // the rest is one more cell, the sum is fixed
  EXPECT_LT(chi_square, degrees + 4.5 * std::sqrt(2 * degrees)) << cells << " cells";
  EXPECT_GT(cells, 50);
}

TEST(SpeculationTest, LogitsThatAreNotFiniteInTheMiddleOfADraftFailThereOnly) {
  std::vector<Request> requests{greedy(words(5, 1), 12), greedy(words(5, 2), 12)};
  number(requests);
  const auto expected = answer_alone(requests);
  const auto prompt = requests[0].prompt;
  const Served served = serve(50, with_oracle({}, expected, [](std::vector<TokenId>&) {}), {.vocab = kVocabulary, .padding = 8}, [&](testing::FakeModel& model) {
    model.on_row = [&](std::span<const TokenId> context, std::span<float> row) {
      if (context.size() == prompt.size() + 7 && std::equal(prompt.begin(), prompt.end(), context.begin())) row[3] = std::nanf("");
    };
  });
  const auto failed = served->generate(requests[0])->samples[0];
  EXPECT_EQ(failed.finish.reason, FinishReason::error);
  EXPECT_EQ(failed.tokens, std::vector<TokenId>(expected[0].samples[0].tokens.begin(), expected[0].samples[0].tokens.begin() + 7));
  ASSERT_NO_FATAL_FAILURE(expect_same(*served->generate(requests[1]), expected[1], "the next"));
  expect_nothing_leaked(*served.engine);
}

TEST(SpeculationTest, ADrafterThatThrowsIsDroppedAndEveryRequestIsAnswered) {
  struct Broken final : Drafter {
    bool reads = false;  // whether it fails later only
    int read(std::span<const TokenId>, int) override {
      if (!reads) throw std::logic_error("no reading today");
      return 0;
    }
    Draft propose(std::span<const TokenId>, int) override { throw std::runtime_error("no draft today"); }
  };
  std::vector<Request> requests{greedy(words(5, 1), 12), greedy(words(5, 2), 12), greedy(words(5, 3), 12)};
  const auto expected = answer_alone(requests);
  static const std::vector<bool> no_lines;
  EngineOptions options{.speculation = Speculation::always};
  options.drafter = [](const Request& request) -> std::unique_ptr<Drafter> {
    if (request.session == "fine") return make_drafter(request, no_lines);
    auto broken = std::make_unique<Broken>();
    broken->reads = request.session == "reads";
    return broken;
  };
  requests[0].session = "reads";
  requests[1].session = "fails at once";
  requests[2].session = "fine";
  const Served served = serve(50, options);
  ASSERT_NO_FATAL_FAILURE(expect_same_answers(*served.engine, requests, expected, 3));
  expect_nothing_leaked(*served.engine);
}

/// No drafter for the session "broken".
template <typename Error>
EngineOptions without_drafter_for_one() {
  static const std::vector<bool> no_lines;
  EngineOptions options{.max_queued_requests = 4, .speculation = Speculation::always};
  options.drafter = [](const Request& request) {
    if (request.session == "broken") throw Error("no drafter today");
    return make_drafter(request, no_lines);
  };
  return options;
}

template <typename Error>
class BrokenDrafterTest : public ::testing::Test {};
using DrafterErrors = ::testing::Types<std::runtime_error, std::logic_error>;
TYPED_TEST_SUITE(BrokenDrafterTest, DrafterErrors);

void expect_no_drafter(const Completion& completion) {
  for (const CompletedSample& sample : completion.samples) {
    EXPECT_EQ(sample.finish.reason, FinishReason::error);
    EXPECT_EQ(sample.finish.error, "no drafter today");
  }
}

TYPED_TEST(BrokenDrafterTest, ARequestWhoseDrafterCannotBeMadeFailsAlone) {
  testing::StepGate gate;
  const Served served = serve(50, without_drafter_for_one<TypeParam>(), {.vocab = kVocabulary, .padding = 8},
                              [&gate](testing::FakeModel& model) { gate.attach(model); });
  Request broken = greedy(words(5, 3), 12);
  broken.session = "broken";
  broken.n = 2;
  std::vector<Collector> others(3);
  Collector failing(2);
  std::vector<tl::expected<RequestHandle, SubmitError>> handles;
  handles.push_back(served->submit(greedy(words(5, 0), 12), others[0].sink()));
  gate.wait_until_at(1);
  // While that one runs three others come, and all are taken at once.
  handles.push_back(served->submit(greedy(words(5, 1), 12), others[1].sink()));
  handles.push_back(served->submit(broken, failing.sink()));
  handles.push_back(served->submit(greedy(words(5, 2), 12), others[2].sink()));
  gate.open();
  expect_no_drafter(failing.wait());
  for (std::size_t i = 0; i < others.size(); ++i) {
    EXPECT_EQ(others[i].wait().samples[0].tokens, served.model->continue_greedily(words(5, i), 12)) << i;
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(served->generate(broken)) << "its place in the queue is free again";
  expect_nothing_leaked(*served.engine);
}

TYPED_TEST(BrokenDrafterTest, TheEngineEndsWithSuchARequestInItsInbox) {
  testing::StepGate gate;
  Served served = serve(50, without_drafter_for_one<TypeParam>(), {.vocab = kVocabulary, .padding = 8},
                        [&gate](testing::FakeModel& model) { gate.attach(model); });
  Request broken = greedy(words(5, 3), 12);
  broken.session = "broken";
  Collector running, failing, after;
  const auto first = served->submit(greedy(words(5, 0), 200), running.sink());
  gate.wait_until_at(1);
  const auto second = served->submit(broken, failing.sink());
  const auto third = served->submit(greedy(words(5, 1), 12), after.sink());
  std::jthread opener([&gate] { gate.open(); });
  served.engine.reset();
  expect_no_drafter(failing.wait());
  (void)running.wait();
  (void)after.wait();
}

TEST(SpeculationTest, WhatOneRequestSaidDraftsForNoOther) {
  // The text of a long request is all that could draft for the short one.
  const Request plain = greedy(words(5, 1), 20);
  const auto tokens = answer_alone({plain})[0].samples[0].tokens;
  Request telling = greedy(plain.prompt, 5);
  telling.prompt.insert(telling.prompt.end(), tokens.begin(), tokens.end());
  telling.prediction = tokens;
  const auto drafts_of_plain = [&](bool after_another) {
    const Served served = serve(100, {.speculation = Speculation::always});
    if (after_another) (void)served->generate(telling);
    const auto before = total(served->stats());
    (void)served->generate(plain);
    const auto after = total(served->stats());
    return std::pair(after.draft_tokens - before.draft_tokens, after.accepted_tokens - before.accepted_tokens);
  };
  EXPECT_EQ(drafts_of_plain(true), drafts_of_plain(false));
}

TEST(SpeculationTest, UsageTellsWhatBecameOfThePrediction) {
  Request request = greedy(words(5, 1), 20);
  const auto tokens = answer_alone({request})[0].samples[0].tokens;
  request.prediction = tokens;
  const Served served = serve(100, {.speculation = Speculation::always});
  const Usage right = served->generate(request)->samples[0].finish.usage;
  EXPECT_EQ(right.accepted_prediction_tokens, 18) << "all but the first, which the prefill gave, and the last, which needs no draft";
  EXPECT_EQ(right.rejected_prediction_tokens, 0);
  request.prediction = words(20, 99);
  request.prediction.insert(request.prediction.begin(), tokens[0]);
  const Usage wrong = served->generate(request)->samples[0].finish.usage;
  EXPECT_LT(wrong.accepted_prediction_tokens, 3) << "by chance";
  EXPECT_GT(wrong.rejected_prediction_tokens, 3);
  request.prediction.clear();
  EXPECT_EQ(served->generate(request)->samples[0].finish.usage.rejected_prediction_tokens, 0);
}

TEST(SpeculationTest, APredictionIsNoLongerThanItsSequenceMayGet) {
  static const std::vector<bool> no_lines;
  std::vector<std::size_t> lengths;
  EngineOptions options{.speculation = Speculation::always};
  options.drafter = [&](const Request& request) {
    lengths.push_back(request.prediction.size());
    return make_drafter(request, no_lines);
  };
  const Served served = serve(50, options);
  Request request = greedy(words(5, 1), 20);
  request.n = 3;
  request.prediction = words(100'000, 2);
  ASSERT_TRUE(served->generate(request));
  EXPECT_EQ(lengths, std::vector<std::size_t>(3, 25));
}

/// The most that drafters that are always behind are given to read in a step in which `samples` of one request decode, and no more.
int most_read_beside_decode(int samples) {
  struct Behind final : Drafter {
    int* took = nullptr;
    int read(std::span<const TokenId>, int at_most) override {
      *took += at_most;  // there is always more
      return at_most;
    }
    Draft propose(std::span<const TokenId>, int) override { return {}; }
  };
  int took = 0, most = 0;  // of the engine's thread, as long as it runs
  EngineOptions options{.speculation = Speculation::always};
  options.drafter = [&took](const Request&) -> std::unique_ptr<Drafter> {
    auto drafter = std::make_unique<Behind>();
    drafter->took = &took;
    return drafter;
  };
  const Served served = serve(200, options, {.vocab = kVocabulary, .padding = 8}, [&](testing::FakeModel& model) {
    model.on_forward = [&, samples](const StepInput& input) {
      const bool all_decode = input.batch.num_seqs() == samples && input.tokens.size() == static_cast<std::size_t>(samples);
      if (all_decode) most = std::max(most, took);
      took = 0;
    };
  });
  Request request = greedy(words(30, 1), 10);
  request.n = samples;
  EXPECT_TRUE(served->generate(request));
  return most;
}

TEST(SpeculationTest, DraftersThatFellBehindReadALittleInAStepTogether) {
  EXPECT_EQ(most_read_beside_decode(8), 1024);
  EXPECT_EQ(most_read_beside_decode(32), 32 * 64) << "the more decode, the more there is to read";
}

TEST(SpeculationTest, TextThatRepeatsItselfIsDraftedFromTheSession) {
  // A model that copies: each token is followed by what followed it in the prompt.
  const auto copying = [](testing::FakeModel& model) {
    model.on_row = [](std::span<const TokenId> context, std::span<float> row) { row[static_cast<std::size_t>((context.back() + 1) % 50)] = 1000.0F; };
  };
  std::vector<TokenId> prompt(50);
  std::iota(prompt.begin(), prompt.end(), 0);
  const Served served = serve(100, {.speculation = Speculation::always}, {.vocab = kVocabulary}, copying);
  const auto sample = served->generate(greedy(prompt, 60))->samples[0];
  for (std::size_t i = 0; i < sample.tokens.size(); ++i) ASSERT_EQ(sample.tokens[i], static_cast<TokenId>(i % 50));
  const auto& counts = served->stats().drafts;
  EXPECT_EQ(counts[static_cast<std::size_t>(DraftSource::previous_attempt)].drafts, 0U);
  EXPECT_GT(counts[static_cast<std::size_t>(DraftSource::prompt)].accepted_tokens, 40U) << "to the prompt's end";
  EXPECT_GT(counts[static_cast<std::size_t>(DraftSource::session_text)].accepted_tokens, 5U) << "what the output has said itself";
  EXPECT_LT(served->stats().steps, 10U);
}

}  // namespace
}  // namespace fixpoint::engine
