#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/engine/serving/served.h"

namespace fixpoint::engine {
namespace {

using namespace std::chrono_literals;
using testing::Collector;
using testing::greedy;
using testing::kVocabulary;
using testing::sampled;
using testing::serve;
using testing::Served;
using testing::StepGate;
using testing::words;

/// An engine that does one step at a time. The gate opens before the engine ends, whatever the test did.
class SteppedTest : public ::testing::Test {
 protected:
  // Without speculation a step gives a running sequence one token, and these tests count them.
  explicit SteppedTest(EngineOptions options = {.block_size = 4, .max_running = 4, .max_step_tokens = 8, .speculation = Speculation::off})
      : served_(serve(64, options, {.vocab = kVocabulary, .padding = 8}, [this](testing::FakeModel& model) { gate_.attach(model); })) {}
  ~SteppedTest() override { gate_.open(); }

  StepGate gate_;
  Served served_;
};

TEST_F(SteppedTest, DroppedInPrefillGivesItsBlocksBackWithinTwoSteps) {
  Collector stays, gone;
  const auto keep = served_->submit(greedy(words(4, 1), 30), stays.sink());
  auto drop = served_->submit(greedy(words(40, 2), 10), gone.sink());
  gate_.run_to(4);
  const int held = served_->stats().blocks_held;
  EXPECT_GE(held, 11);
  *drop = RequestHandle();
  gate_.run_to(6);
  EXPECT_LE(served_->stats().blocks_held, 3) << "the other one's";
  EXPECT_EQ(served_->stats().running, 1);
  EXPECT_EQ(gone.outputs(), 0U);
  gate_.open();
  EXPECT_EQ(stays.wait().samples[0].tokens, served_.model->continue_greedily(words(4, 1), 30));
}

TEST_F(SteppedTest, DroppedInDecodeGivesItsBlocksBackWithinTwoSteps) {
  Collector stays, gone;
  const auto keep = served_->submit(greedy(words(4, 1), 30), stays.sink());
  auto drop = served_->submit(greedy(words(4, 2), 30), gone.sink());
  gate_.run_to(10);
  EXPECT_EQ(served_->stats().running, 2);
  EXPECT_GE(served_->stats().blocks_held, 6) << "12 computed tokens each";
  *drop = RequestHandle();
  const auto outputs = gone.outputs();
  gate_.run_to(12);
  EXPECT_EQ(served_->stats().running, 1);
  EXPECT_LE(served_->stats().blocks_held, 4) << "the other one's 14 tokens";
  EXPECT_EQ(gone.outputs(), outputs) << "no callback after the handle is gone";
  gate_.open();
  EXPECT_EQ(stays.wait().samples[0].tokens.size(), 30U);
}

TEST_F(SteppedTest, DroppedInTheQueueNeverStarts) {
  std::vector<Collector> running(4);
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < running.size(); ++i) handles.push_back(std::move(*served_->submit(greedy(words(2, i), 12), running[i].sink())));
  gate_.run_to(3);
  Collector gone;
  auto drop = served_->submit(greedy(words(4, 9), 10), gone.sink());
  gate_.run_to(5);
  EXPECT_EQ(served_->stats().waiting, 1);
  *drop = RequestHandle();
  gate_.run_to(7);
  EXPECT_EQ(served_->stats().waiting, 0);
  gate_.open();
  for (auto& collector : running) EXPECT_EQ(collector.wait().samples[0].tokens.size(), 12U);
  EXPECT_EQ(gone.outputs(), 0U);
}

TEST_F(SteppedTest, CancelReportsEverySample) {
  Request request = sampled(words(6, 1), 50, 1);
  request.n = 3;
  Collector collector(3);
  auto handle = served_->submit(request, collector.sink());
  gate_.run_to(6);
  handle->cancel();
  gate_.open();
  for (const auto& sample : collector.wait().samples) EXPECT_EQ(sample.finish.reason, FinishReason::cancelled);
}

TEST_F(SteppedTest, AnEngineThatEndsTellsEverybody) {
  std::vector<Collector> collectors(6);
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < collectors.size(); ++i) handles.push_back(std::move(*served_->submit(greedy(words(2, i), 200), collectors[i].sink())));
  gate_.run_to(3);
  std::jthread opener([this] { gate_.open(); });
  served_.engine.reset();
  for (auto& collector : collectors) EXPECT_EQ(collector.wait().samples[0].finish.reason, FinishReason::cancelled);
  // The handles outlive the engine.
  handles[0].cancel();
}

TEST_F(SteppedTest, ARequestsBlocksStayPinnedForItsTime) {
  gate_.open();
  Request request = greedy(words(20, 1), 5);
  request.pin_ttl = 1h;
  request.session = "problem 1";
  ASSERT_TRUE(served_->generate(request));
  ASSERT_TRUE(served_->generate(greedy(words(1, 2), 1)));
  EXPECT_EQ(served_->stats().blocks_pinned, 6) << "24 computed tokens";
  // Others fill the memory many times over; the pinned ones are still there.
  for (std::uint64_t i = 10; i < 30; ++i) ASSERT_TRUE(served_->generate(greedy(words(100, i), 5)));
  EXPECT_EQ(served_->generate(request)->samples[0].finish.usage.cached_tokens, 19);
  ASSERT_TRUE(served_->generate(greedy(words(1, 3), 1)));
  EXPECT_EQ(served_->stats().blocks_pinned, 6) << "the session's new pin took the old one's place";
  served_->end_session("another tenant", request.session);
  ASSERT_TRUE(served_->generate(greedy(words(1, 4), 1)));
  EXPECT_EQ(served_->stats().blocks_pinned, 6);
  served_->end_session("", request.session);
  ASSERT_TRUE(served_->generate(greedy(words(1, 5), 1)));
  EXPECT_EQ(served_->stats().blocks_pinned, 0);
}

TEST_F(SteppedTest, APinEndsWithItsHandle) {
  gate_.open();
  const auto prompt = words(20, 1);
  ASSERT_TRUE(served_->generate(greedy(prompt, 1)));
  Pin pin = served_->pin("", prompt, 1h);
  ASSERT_TRUE(served_->generate(greedy(words(1, 2), 2)));
  EXPECT_EQ(served_->stats().blocks_pinned, 5);
  Pin other = std::move(pin);
  ASSERT_TRUE(served_->generate(greedy(words(1, 3), 2)));
  EXPECT_EQ(served_->stats().blocks_pinned, 5);
  other = Pin();
  ASSERT_TRUE(served_->generate(greedy(words(1, 4), 2)));
  EXPECT_EQ(served_->stats().blocks_pinned, 0);
}

TEST_F(SteppedTest, TheQueueIsBounded) {
  EngineOptions options{.block_size = 4, .max_running = 1};
  options.max_queued_requests = 3;
  StepGate gate;
  {
    const Served served = serve(64, options, {.vocab = kVocabulary, .padding = 8}, [&](testing::FakeModel& model) { gate.attach(model); });
    std::vector<RequestHandle> handles;
    for (std::uint64_t i = 0; i < 3; ++i) handles.push_back(std::move(*served->submit(greedy(words(3, i), 5), [](Output) {})));
    const auto refused = served->submit(greedy(words(3, 9), 5), [](Output) {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, SubmitError::Kind::queue_full);
    gate.open();
  }
}

TEST(EngineCallbackTest, OneThatThrowsEndsItsOwnRequestOnly) {
  const Served served = serve(64);
  Collector other;
  std::atomic<int> calls{0};
  const auto bad = served->submit(greedy(words(3, 1), 50), [&](Output) {
    ++calls;
    throw std::runtime_error("mine");
  });
  const auto good = served->submit(greedy(words(3, 2), 20), other.sink());
  EXPECT_EQ(other.wait().samples[0].tokens.size(), 20U);
  EXPECT_EQ(calls, 1);
}

TEST(EngineCallbackTest, AHandleMayBeDroppedInsideItsCallback) {
  const Served served = serve(64);
  std::mutex mutex;
  RequestHandle handle;
  std::atomic<int> calls{0};
  {
    const std::lock_guard lock(mutex);
    handle = std::move(*served->submit(greedy(words(3, 1), 50), [&](Output) {
      const std::lock_guard inner(mutex);
      ++calls;
      handle = RequestHandle();
    }));
  }
  // Its blocks come back while others are served.
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(served->generate(greedy(words(3, 5), 5)));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(served->stats().running, 0);
}

// Threads that submit, wait, and lose interest at any moment. Afterwards nothing is held.
TEST(EngineSoakTest, ManyThreadsComeAndGo) {
  const Served served = serve(48, {.block_size = 4, .max_running = 6, .max_step_tokens = 16});
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&served, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 25; ++i) {
        Request request = sampled(words(1 + static_cast<int>(random() % 60), random() % 6), 1 + static_cast<int>(random() % 30), random());
        request.n = 1 + static_cast<int>(random() % 3);
        request.priority = static_cast<int>(random() % 3);
        Collector collector(request.n);
        const auto handle = served->submit(request, collector.sink());
        ASSERT_TRUE(handle);
        switch (random() % 3) {
          case 0:
            (void)collector.wait();
            break;
          case 1:
            collector.wait_for_outputs(1 + random() % 3 % static_cast<unsigned>(*request.max_tokens));
            break;
          default:
            break;
        }
      }
    });
  }
  threads.clear();
  ASSERT_TRUE(served->generate(greedy(words(1, 1), 2)));
  ASSERT_TRUE(served->generate(greedy(words(1, 1), 2)));
  const auto stats = served->stats();
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.blocks_held, 0);
  EXPECT_EQ(stats.blocks_free + stats.blocks_cached, stats.blocks_total);
  EXPECT_EQ(stats.watchdog_trips, 0U);
}

// Steps that fail now and then: every request ends, one way or the other, and the engine is empty afterwards.
TEST(EngineSoakTest, RandomFaultsNeverLeaveAnybodyWaiting) {
  std::mt19937 faults(7);
  const Served served = serve(32, {.block_size = 4, .max_running = 4, .max_step_tokens = 12}, {.vocab = kVocabulary, .padding = 8},
                              [&](testing::FakeModel& model) {
                                model.on_forward = [&](const StepInput&) {
                                  if (faults() % 40 == 0) throw std::runtime_error("a fault");
                                  if (faults() % 200 == 0) throw std::logic_error("a worse fault");
                                };
                              });
  std::vector<Collector> collectors(60);
  std::vector<RequestHandle> handles;
  for (std::size_t i = 0; i < collectors.size(); ++i) {
    handles.push_back(std::move(*served->submit(greedy(words(1 + static_cast<int>(i % 30), i % 7), 10), collectors[i].sink())));
  }
  int whole = 0;
  for (std::size_t i = 0; i < collectors.size(); ++i) {
    const auto sample = collectors[i].wait().samples[0];
    const auto expected = served.model->continue_greedily(words(1 + static_cast<int>(i % 30), i % 7), 10);
    if (sample.finish.reason == FinishReason::length) {
      EXPECT_EQ(sample.tokens, expected);
      ++whole;
    } else {
      EXPECT_EQ(sample.finish.reason, FinishReason::error);
      EXPECT_TRUE(std::equal(sample.tokens.begin(), sample.tokens.end(), expected.begin())) << "what came before the fault was right";
    }
  }
  EXPECT_GT(whole, 0);
  EXPECT_EQ(served->stats().watchdog_trips, 0U);
}

}  // namespace
}  // namespace fixpoint::engine
