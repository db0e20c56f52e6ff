// Random loops against what must hold of all of them: no budget is overrun, there is exactly one end, and it names the best
// program. FIXPOINT_RANDOM_LOOPS sets how many; docs/agent.md tells of a million.
#include <cstdlib>
#include <random>

#include "agent/replay.h"
#include "tests/agent/loop_fixture.h"

namespace fixpoint::agent {
namespace {

using std::chrono::milliseconds;

/// A model and a checker that do anything at all within their limits, decided by the seed.
struct Chaos {
  explicit Chaos(std::uint64_t seed) : random(seed) {}

  int pick(int limit) {
    const std::scoped_lock lock(mutex);
    return static_cast<int>(random() % static_cast<std::uint64_t>(limit));
  }

  tl::expected<Generation, GenerateError> generate(const GenerateRequest& request) {
    EXPECT_GT(request.max_tokens, 0);
    EXPECT_GT(request.timeout.count(), 0);
    const std::int64_t tokens = 1 + pick(static_cast<int>(std::min<std::int64_t>(request.max_tokens, 60)));
    const auto elapsed = milliseconds(1 + pick(static_cast<int>(std::min<std::int64_t>(request.timeout.count(), 40))));
    if (pick(12) == 0) {
      static constexpr GenerateError::Kind kKinds[] = {GenerateError::Kind::timeout, GenerateError::Kind::too_long,
                                                       GenerateError::Kind::unavailable, GenerateError::Kind::refused};
      return tl::unexpected(GenerateError{.kind = kKinds[pick(4)], .detail = "chaos", .usage = {.completion_tokens = tokens}});
    }
    std::string text = pick(9) == 0 ? std::string() : pick(9) == 0 ? "CORRECT" : fenced(program(pick(7)), "Words.");
    return Generation{.text = std::move(text), .usage = {.prompt_tokens = 9, .completion_tokens = tokens}, .elapsed = elapsed};
  }

  std::mutex mutex;
  std::mt19937_64 random;
};

struct ChaosGenerator : Generator {
  explicit ChaosGenerator(Chaos& from) : chaos(from) {}
  tl::expected<Generation, GenerateError> generate(const GenerateRequest& request, const OnText& on_text, std::stop_token) override {
    auto result = chaos.generate(request);
    if (result && on_text) on_text(result->text);
    return result;
  }
  std::string name() const override { return "chaos"; }
  Chaos& chaos;
};

struct ChaosChecker : Checker {
  explicit ChaosChecker(Chaos& from) : chaos(from) {}
  tl::expected<Judgement, CheckError> check(const CheckRequest& request, std::stop_token) override {
    EXPECT_GT(request.time_limit.count(), 0);
    const auto time = milliseconds(1 + chaos.pick(static_cast<int>(std::min<std::int64_t>(request.time_limit.count(), 30))));
    if (chaos.pick(25) == 0) return tl::unexpected(CheckError{CheckError::Kind::infrastructure, "chaos"});
    Judgement judgement{.total = static_cast<int>(request.tests.size()), .sandbox = time, .elapsed = time};
    judgement.passed = judgement.total == 0 ? 0 : chaos.pick(judgement.total + 1);
    if (judgement.total == 0 ? chaos.pick(3) == 0 : judgement.passed < judgement.total) {
      judgement.status = static_cast<CheckStatus>(1 + chaos.pick(7));
      judgement.failures.push_back({.test = "assert f(1) == 7", .actual = std::to_string(chaos.pick(3))});
    }
    return judgement;
  }
  Chaos& chaos;
};

LoopOptions random_options(Chaos& chaos) {
  LoopOptions options;
  options.task = {.rounds = chaos.pick(11), .tokens = chaos.pick(400), .wall = milliseconds(chaos.pick(400)), .sandbox = milliseconds(chaos.pick(200))};
  options.round = {.rounds = 1, .tokens = 1 + chaos.pick(80), .wall = milliseconds(1 + chaos.pick(80)), .sandbox = milliseconds(1 + chaos.pick(40))};
  options.drafts = chaos.pick(4) == 0 ? 1 + chaos.pick(3) : 1;
  options.own_tests = chaos.pick(4) == 0;
  options.seed = static_cast<std::uint64_t>(chaos.pick(1'000));
  options.ladder.clear();
  for (int rungs = chaos.pick(4); rungs > 0; --rungs) {
    options.ladder.push_back({.kind = static_cast<RungKind>(chaos.pick(4)), .attempts = chaos.pick(3), .grant = {.rounds = chaos.pick(3), .tokens = chaos.pick(50)}});
  }
  return options;
}

/// The best attempt, by a plain reading of the rule.
int best_score(const Progress& progress) {
  int best = -1;
  for (const Round& attempt : progress.attempts) {
    if (!attempt.program.empty() && attempt.judgement) best = std::max(best, attempt.judgement->passed);
  }
  return best;
}

TEST(RandomLoopsTest, NoOverrunAlwaysAnEndAlwaysTheBest) {
  const char* wanted = std::getenv("FIXPOINT_RANDOM_LOOPS");
  const std::uint64_t loops = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 4'000;
  std::array<std::uint64_t, 7> outcomes{};
  for (std::uint64_t seed = 1; seed <= loops; ++seed) {
    Chaos chaos(seed);
    ChaosGenerator model(chaos);
    ChaosChecker checker(chaos);
    Task task = make_task();
    if (chaos.pick(4) == 0) task.visible.clear();
    const LoopOptions options = random_options(chaos);
    Events events;
    Budget batch(chaos.pick(3) == 0 ? Amounts{.rounds = 3, .tokens = 90, .wall = milliseconds(90), .sandbox = milliseconds(50)} : kUnlimited);
    Loop loop({.model = &model, .specialist = &model, .explainer = &model, .checker = &checker}, &batch);
    const auto result = loop.run(task, options, {}, events.sink());
    ASSERT_TRUE(result.has_value()) << "seed " << seed << ": " << result.error().detail;
    const Amounts limits = result->progress.limits(), spent = result->end.spent, all = batch.limits();
    ASSERT_TRUE(std::holds_alternative<Ended>(events.all.back().event)) << "seed " << seed;
    ASSERT_EQ(events.of<Ended>().size(), 1U) << "seed " << seed;
    ASSERT_LE(spent.rounds, std::min({limits.rounds, kMaxRounds, all.rounds})) << "seed " << seed;
    ASSERT_LE(spent.tokens, std::min(limits.tokens, all.tokens)) << "seed " << seed;
    // A generation that fails and a check that fails are charged the time that really went by: about a millisecond each.
    const auto failures = static_cast<std::int64_t>(events.of<GenerationFailed>().size() + events.of<CheckFailed>().size());
    if (failures == 0) {
      ASSERT_LE(spent.wall, std::min(limits.wall, all.wall)) << "seed " << seed;
    }
    ASSERT_LE(spent.sandbox, std::min(limits.sandbox, all.sandbox)) << "seed " << seed;
    ASSERT_EQ(batch.spent(), spent) << "seed " << seed;
    if (best_score(result->progress) >= 0) {
      ASSERT_TRUE(result->end.best.has_value()) << "seed " << seed;
      const Round& best = result->progress.attempts[static_cast<std::size_t>(*result->end.best)];
      ASSERT_EQ(best.judgement->passed, best_score(result->progress)) << "seed " << seed;
      ASSERT_EQ(best.program, result->program) << "seed " << seed;
    }
    if (result->end.outcome == Outcome::solved) {
      ASSERT_NE(result->end.basis, Basis::none) << "seed " << seed;
    }
    if (seed % 16 == 0) {
      const ReplayReport replayed = replay(events.all);
      ASSERT_TRUE(replayed.identical()) << "seed " << seed << ": " << replayed.difference;
    }
    ++outcomes[static_cast<std::size_t>(result->end.outcome)];
  }
  for (const Outcome outcome : {Outcome::solved, Outcome::handed_over, Outcome::budget_exhausted, Outcome::stuck, Outcome::failed}) {
    EXPECT_GT(outcomes[static_cast<std::size_t>(outcome)], 0U) << to_string(outcome);
  }
}

}  // namespace
}  // namespace fixpoint::agent
