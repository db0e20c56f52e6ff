// The real engine with a small model of random weights: what matters here is which tokens are computed again.
#include "agent/local_generator.h"

#include <thread>

#include "engine/engine.h"
#include "engine/language_model.h"
#include "tests/agent/loop_fixture.h"
#include "tests/engine/models/random_model.h"

namespace fixpoint::agent {
namespace {

/// Never passes, and never fails twice in the same way.
struct Unhappy : Checker {
  tl::expected<Judgement, CheckError> check(const CheckRequest&, std::stop_token stop) override {
    if (between) between();
    if (stop.stop_requested()) return tl::unexpected(CheckError{CheckError::Kind::cancelled, {}});
    Judgement judgement{.status = CheckStatus::wrong_answer, .total = 1, .sandbox = std::chrono::milliseconds(1)};
    judgement.failures.push_back({.test = "assert f(1) == 7", .actual = std::to_string(++calls)});
    return judgement;
  }
  std::function<void()> between;
  int calls = 0;
};

struct LocalGeneratorTest : ::testing::Test {
  TestFolder folder;
  std::unique_ptr<engine::LanguageModel> model;

  void load(std::size_t kv_memory = std::size_t{64} << 20, bool silent_controls = false) {
    test_models::RandomModelSpec spec;
    spec.context = 4'096;
    spec.silent_controls = silent_controls;
    test_models::write_random_model(folder.file("model.gguf"), spec);
    engine::LanguageModelOptions options;
    options.path = folder.file("model.gguf");
    options.cpu.num_threads = 1;
    options.engine.kv_memory_bytes = kv_memory;
    auto loaded = engine::LanguageModel::load(options);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message();
    model = *std::move(loaded);
  }
  std::unique_ptr<Generator> generator() {
    return make_local_generator(model->engine(), {.name = "tiny", .format = *model->chat_format()});
  }
  /// Another user's work, enough to push out whatever is not held.
  void other_work() {
    for (int i = 0; i < 3; ++i) {
      engine::Request request;
      for (int t = 0; t < 900; ++t) request.prompt.push_back((t * 7 + i * 131 + ++work_) % 250);
      request.max_tokens = 2;
      request.sampling.temperature = 0;
      ASSERT_TRUE(model->engine().generate(std::move(request)).has_value());
    }
  }
  int work_ = 0;

  /// Cached tokens of each later round beside those of the round before it: its prompt and its answer.
  void expect_cached(const Progress& progress) {
    std::int64_t cached = 0, could = 0;
    for (const Round& round : progress.attempts) {
      if (!round.ask.parent) continue;
      const Usage& before = progress.attempts[static_cast<std::size_t>(*round.ask.parent)].usage;
      cached += round.usage.cached_tokens;
      could += before.prompt_tokens + before.completion_tokens;
    }
    ASSERT_GT(could, 0);
    std::printf("%ld of %ld tokens from cache, %.2f %%\n", static_cast<long>(cached), static_cast<long>(could),
                100.0 * static_cast<double>(cached) / static_cast<double>(could));
    EXPECT_GE(static_cast<double>(cached), 0.98 * static_cast<double>(could));
  }

  Result run(Unhappy& checker) {
    const auto writer = generator();
    LoopOptions options{.ladder = {}};
    options.task.rounds = 5;
    options.round.tokens = 120;
    options.temperature = 0.9;
    options.seed = 3;
    Loop loop({.model = writer.get(), .checker = &checker});
    Task task = make_task();
    for (int i = 0; i < 20; ++i) task.statement += " The number seven is what it gives back, whatever x is.";
    auto result = loop.run(task, options, {}, {});
    EXPECT_TRUE(result.has_value());
    return *std::move(result);
  }
};

TEST_F(LocalGeneratorTest, LaterRoundsComeFromThePrefixCache) {
  ASSERT_NO_FATAL_FAILURE(load());
  Unhappy checker;
  const Result result = run(checker);
  EXPECT_EQ(result.end.spent.rounds, 5);
  expect_cached(result.progress);
}

TEST_F(LocalGeneratorTest, AlsoAfterOtherWorkHasRunInBetween) {
  ASSERT_NO_FATAL_FAILURE(load(std::size_t{1} << 20));
  Unhappy checker;
  checker.between = [this] { other_work(); };
  const Result result = run(checker);
  EXPECT_EQ(result.end.spent.rounds, 5);
  EXPECT_GT(model->engine().stats().blocks_evicted, 0U);
  expect_cached(result.progress);
}

TEST_F(LocalGeneratorTest, BlocksAreKeptWhileTheSandboxRunsAndNoLongerThanTheSession) {
  ASSERT_NO_FATAL_FAILURE(load());
  int checks_without = 0;
  Unhappy checker;
  checker.between = [&] { checks_without += model->engine().stats().blocks_pinned > 0 ? 0 : 1; };
  const Result result = run(checker);
  EXPECT_EQ(checks_without, 0) << "of " << checker.calls;
  other_work();  // the engine has heard of the end
  EXPECT_EQ(model->engine().stats().blocks_pinned, 0);
}

TEST_F(LocalGeneratorTest, AStopRequestGivesTheBlocksBack) {
  // The likeliest token is never one that ends the answer, so only the request to stop does.
  ASSERT_NO_FATAL_FAILURE(load(std::size_t{64} << 20, true));
  const auto writer = generator();
  std::stop_source stop;
  GenerateRequest request;
  request.messages = {{Role::user, "Hello"}};
  request.max_tokens = 3'000;
  request.temperature = 0;
  const auto result = writer->generate(request, [&stop](std::string_view) { stop.request_stop(); }, stop.get_token());
  ASSERT_FALSE(result.has_value()) << "ended by itself after " << result->usage.completion_tokens << " tokens";
  EXPECT_EQ(result.error().kind, GenerateError::Kind::cancelled);
  other_work();  // some steps
  EXPECT_EQ(model->engine().stats().running, 0);
  EXPECT_EQ(model->engine().stats().blocks_held, model->engine().stats().blocks_pinned);
}

TEST_F(LocalGeneratorTest, AProgramsFirstWordsArePutInAfterItsFence) {
  ASSERT_NO_FATAL_FAILURE(load(std::size_t{64} << 20, true));
  GenerateRequest request{.messages = {{Role::user, "Hello"}}, .session = "s", .max_tokens = 60};
  const auto free = generator()->generate(request, {}, {});
  ASSERT_TRUE(free.has_value());
  // Two characters that the model writes anyway stand for the fence.
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  std::size_t at = 1;
  while (at + 2 < free->text.size() && !(ascii(free->text[at]) && ascii(free->text[at + 1]))) ++at;
  ASSERT_LT(at + 2, free->text.size()) << free->text;
  const std::string fence = free->text.substr(at, 2);
  request.program_start = ProgramStart{.fence = fence, .text = "def seven"};
  const auto not_given = generator()->generate(request, {}, {});
  ASSERT_TRUE(not_given.has_value());
  EXPECT_EQ(not_given->text, free->text) << "only models that were trained so are given the start";

  const auto writer = make_local_generator(
      model->engine(), {.name = "tiny", .format = *model->chat_format(), .starts_programs = true});
  std::string streamed;
  const auto given = writer->generate(request, [&streamed](std::string_view text) { streamed += text; }, {});
  ASSERT_TRUE(given.has_value());
  const std::string begin = free->text.substr(0, free->text.find(fence)) + fence + "def seven";
  EXPECT_EQ(given->text.substr(0, begin.size()), begin);
  EXPECT_EQ(streamed, given->text);
  EXPECT_EQ(given->usage.completion_tokens, 60) << "what was put in counts, too";
  EXPECT_EQ(given->usage.prompt_tokens, free->usage.prompt_tokens);

  GenerateRequest full = request;  // a start that leaves no room in the context
  full.session = "full";
  full.max_tokens = 30'000;
  full.program_start->text = "def " + std::string(20'000, 'x');
  const auto ended = writer->generate(full, {}, {});
  ASSERT_TRUE(ended.has_value()) << ended.error().detail;
  EXPECT_EQ(ended->finish, Finish::length);
  EXPECT_TRUE(ended->text.ends_with(full.program_start->text));

  request.messages.push_back({Role::assistant, given->text});
  request.messages.push_back({Role::user, "Again"});
  const auto next = writer->generate(request, {}, {});
  ASSERT_TRUE(next.has_value());
  EXPECT_GE(next->usage.cached_tokens, given->usage.prompt_tokens + given->usage.completion_tokens - 32);

  request.program_start->fence = "no such fence";
  EXPECT_EQ(writer->generate({.messages = {{Role::user, "Hello"}}, .max_tokens = 60, .program_start = request.program_start}, {}, {})->text,
            free->text);
}

TEST_F(LocalGeneratorTest, APromptBeyondTheContextIsToldApart) {
  ASSERT_NO_FATAL_FAILURE(load());
  GenerateRequest request;
  request.messages = {{Role::user, std::string(20'000, 'x')}};
  const auto result = generator()->generate(request, {}, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, GenerateError::Kind::too_long);
  EXPECT_EQ(result.error().usage.prompt_tokens, 0) << "nothing was read";
}

TEST_F(LocalGeneratorTest, ParallelDraftsComputeTheirPromptOnce) {
  ASSERT_NO_FATAL_FAILURE(load());
  const auto writer = generator();
  Unhappy checker;
  LoopOptions options{.drafts = 4, .ladder = {}};
  options.task.rounds = 1;
  options.round.tokens = 16;
  Loop loop({.model = writer.get(), .checker = &checker});
  const auto result = loop.run(make_task(), options, {}, {});
  ASSERT_TRUE(result.has_value());
  std::int64_t prompt = 0, computed = 0, drafts = 0;
  for (const Round& round : result->progress.attempts) {
    if (round.ask.purpose != Purpose::draft || round.number != 0) continue;
    prompt = round.usage.prompt_tokens;
    computed += round.usage.prompt_tokens - round.usage.cached_tokens;
    ++drafts;
  }
  EXPECT_EQ(drafts, 4);
  EXPECT_GT(prompt, 64);
  EXPECT_LE(computed, prompt + 3 * 16) << "of each other draft less than a block";
}

TEST_F(LocalGeneratorTest, ParallelDraftsAndManySessionsShareTheEngine) {
  ASSERT_NO_FATAL_FAILURE(load());
  const auto writer = generator();
  std::atomic<int> ended{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        Unhappy checker;
        LoopOptions options{.drafts = 3, .ladder = {}};
        options.task.rounds = 1;
        options.round.tokens = 16;
        Loop loop({.model = writer.get(), .checker = &checker});
        const auto result = loop.run(make_task(), options, {}, {});
        if (result && result->end.outcome == Outcome::budget_exhausted) ++ended;
      });
    }
  }
  EXPECT_EQ(ended, 3);
}

}  // namespace
}  // namespace fixpoint::agent
