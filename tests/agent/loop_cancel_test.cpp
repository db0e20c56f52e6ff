#include <condition_variable>
#include <thread>

#include "agent/replay.h"
#include "tests/agent/loop_fixture.h"

namespace fixpoint::agent {
namespace {

/// Waits until stopped; nothing else ends it.
void wait_for(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock lock(mutex);
  wake.wait(lock, stop, [] { return false; });
}

struct CancelTest : ::testing::Test {
  TestFolder folder;
  std::unique_ptr<Journal> journal = *Journal::open(folder.file("journal.db"));
  NumberChecker checker;
  Events events;
  LoopOptions options{.ladder = {}};
  std::stop_source stop;

  /// Requests a stop as soon as the event has been announced.
  template <class E>
  OnEvent stop_at() {
    return [this](const Stamped& stamped) {
      events.all.push_back(stamped);
      if (std::holds_alternative<E>(stamped.event)) stop.request_stop();
    };
  }

  /// Runs until cancelled, then resumes with a model that solves it.
  void expect_cancel_and_resume(FunctionGenerator& model, const OnEvent& on_event) {
    Loop loop({.model = &model, .checker = &checker, .journal = journal.get()});
    const auto cancelled = loop.run(make_task(), options, stop.get_token(), on_event);
    ASSERT_TRUE(cancelled.has_value());
    ASSERT_EQ(cancelled->end.outcome, Outcome::cancelled);
    EXPECT_EQ(events.of<Ended>().size(), 1U);
    EXPECT_EQ(journal->session(cancelled->session)->state, "cancelled");

    checker.before = nullptr;
    FunctionGenerator solver([](const GenerateRequest&, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
      return answer(fenced(program(7)));
    });
    Loop again({.model = &solver, .checker = &checker, .journal = journal.get()});
    const auto result = again.resume(cancelled->session, {}, {});
    ASSERT_TRUE(result.has_value()) << result.error().detail;
    EXPECT_EQ(result->end.outcome, Outcome::solved);
    const ReplayReport replayed = replay(*journal->events(cancelled->session));
    EXPECT_TRUE(replayed.identical()) << replayed.difference;
  }
};

tl::expected<Generation, GenerateError> blocking(const GenerateRequest&, const std::stop_token& stop) {
  wait_for(stop);
  return tl::unexpected(GenerateError{.kind = GenerateError::Kind::cancelled, .usage = {.completion_tokens = 4}});
}
tl::expected<Generation, GenerateError> wrong(const GenerateRequest&, const std::stop_token&) { return answer(fenced(program(1))); }

TEST_F(CancelTest, BeforeTheFirstRound) {
  FunctionGenerator model(FunctionGenerator::Function{wrong});
  expect_cancel_and_resume(model, stop_at<SessionStarted>());
  EXPECT_TRUE(model.requests().empty());
}

TEST_F(CancelTest, WhileTheModelWrites) {
  FunctionGenerator model(FunctionGenerator::Function{blocking});
  expect_cancel_and_resume(model, stop_at<GenerationStarted>());
  EXPECT_EQ(events.of<GenerationFailed>().at(0).cost.tokens, 4);
}

TEST_F(CancelTest, WhileParallelDraftsAreWritten) {
  options.drafts = 4;
  FunctionGenerator model(FunctionGenerator::Function{blocking});
  expect_cancel_and_resume(model, stop_at<GenerationStarted>());
}

TEST_F(CancelTest, WhileTheProgramRuns) {
  FunctionGenerator model(FunctionGenerator::Function{wrong});
  checker.before = [](const std::stop_token& token) { wait_for(token); };
  expect_cancel_and_resume(model, stop_at<CheckStarted>());
}

TEST_F(CancelTest, BetweenTwoRounds) {
  FunctionGenerator model(FunctionGenerator::Function{wrong});
  expect_cancel_and_resume(model, stop_at<Checked>());
  EXPECT_EQ(model.requests().size(), 1U);
}

TEST_F(CancelTest, FromAnotherThread) {
  FunctionGenerator model(FunctionGenerator::Function{blocking});
  std::mutex mutex;
  std::condition_variable started;
  bool running = false;
  const std::jthread other([&] {
    std::unique_lock lock(mutex);
    started.wait(lock, [&] { return running; });
    stop.request_stop();
  });
  expect_cancel_and_resume(model, [&](const Stamped& stamped) {
    events.all.push_back(stamped);
    if (!std::holds_alternative<GenerationStarted>(stamped.event)) return;
    const std::scoped_lock lock(mutex);
    running = true;
    started.notify_one();
  });
}

TEST_F(CancelTest, OneLoopServesManyThreadsAndOneJournal) {
  FunctionGenerator model([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    return answer(fenced(program(depth_of(request) < 2 ? depth_of(request) : 7)));
  });
  Loop loop({.model = &model, .checker = &checker, .journal = journal.get()});
  std::atomic<int> solved{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 5; ++n) {
          const auto result = loop.run(make_task(), {.drafts = 2}, {}, {});
          if (result && result->end.outcome == Outcome::solved) ++solved;
        }
      });
    }
  }
  EXPECT_EQ(solved, 20);
  EXPECT_EQ(journal->sessions(100)->size(), 20U);
}

}  // namespace
}  // namespace fixpoint::agent
