#include "agent/replay.h"
#include "tests/agent/loop_fixture.h"

namespace fixpoint::agent {
namespace {

/// Events that a crash may cut off after they were begun, and that are then begun again.
bool is_begun_again(const Event& event) { return std::holds_alternative<CheckStarted>(event); }

struct ResumeTest : ::testing::Test {
  NumberChecker checker;
  LoopOptions options;
  /// Two drafts, a repair, the same program again, a branch, a second branch, a person.
  FunctionGenerator model{[](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    const int value = request.temperature > 0 ? static_cast<int>(request.seed % 5) : depth_of(request) < 2 ? depth_of(request) : 1;
    return answer(fenced(program(value), "It was wrong."));
  }};

  Result run(Journal& journal, const std::string& name) {
    Loop loop({.model = &model, .checker = &checker, .journal = &journal});
    auto result = loop.run(make_task(), options, {}, {}, name);
    EXPECT_TRUE(result.has_value());
    return *std::move(result);
  }
};

/// Cuts a session's record behind each of its events, goes on from there, and expects the end that it has without a cut.
void cut_everywhere(const Task& task, const LoopOptions& options, Services services) {
  const TestFolder folder;
  const auto whole = *Journal::open(folder.file("whole.db"));
  services.journal = whole.get();
  ASSERT_TRUE(Loop(services).run(task, options, {}, {}, "s").has_value());
  const std::vector<Stamped> recorded = *whole->events("s");
  for (std::size_t kept = 1; kept + 1 < recorded.size(); ++kept) {
    const auto journal = *Journal::open(folder.file("cut" + std::to_string(kept) + ".db"));
    std::vector<Event> before;
    for (std::size_t i = 0; i < kept; ++i) before.push_back(recorded[i].event);
    // What stands in one transaction is there as a whole or not at all: the journal is cut where a commit may have ended.
    if (std::holds_alternative<Generated>(before.back())) continue;
    const bool explained = std::holds_alternative<Explained>(before.back());
    if (explained && std::holds_alternative<ProgramWritten>(recorded[kept].event)) continue;
    const bool begun_again = is_begun_again(before.back());
    ASSERT_TRUE(journal->append("s", 0, std::move(before)).has_value());
    services.journal = journal.get();
    const auto result = Loop(services).resume("s", {}, {});
    ASSERT_TRUE(result.has_value()) << kept << ": " << result.error().detail;
    std::vector<std::string> expected = substance(recorded);
    std::vector<std::string> found = substance(*journal->events("s"));
    if (begun_again) {
      const auto twice = std::adjacent_find(found.begin(), found.end());
      ASSERT_NE(twice, found.end());
      found.erase(twice);
    }
    EXPECT_EQ(found, expected) << "after event " << kept;
    const ReplayReport replayed = replay(*journal->events("s"));
    EXPECT_TRUE(replayed.identical()) << "after event " << kept << ": " << replayed.difference;
  }
}

/// Whether a session of these options has an event that `is` accepts: a scenario must hold what it is there for.
template <class Is>
bool happens(const Task& task, const LoopOptions& options, Services services, Is is) {
  Events events;
  services.journal = nullptr;
  return Loop(services).run(task, options, {}, events.sink()).has_value() &&
         std::any_of(events.all.begin(), events.all.end(), [&](const Stamped& stamped) { return is(stamped.event); });
}

TEST_F(ResumeTest, ACrashAfterAnyEventEndsAsIfItHadNotHappened) {
  options.drafts = 2;
  options.task.rounds = 6;
  options.ladder.push_back({.kind = RungKind::person});
  cut_everywhere(make_task(), options, {.model = &model, .checker = &checker});
}

TEST_F(ResumeTest, ACrashWhileHelpersWorkChangesNothing) {
  FunctionGenerator explainer([](const GenerateRequest&, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    return answer("It gives back another number.");
  });
  FunctionGenerator specialist([](const GenerateRequest&, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    return answer(fenced(program(7), "Seven."));
  });
  Task task = make_task();
  task.hidden = {{Assertion{"assert f(9) == 7"}}};
  options.ladder = {{.kind = RungKind::branch, .attempts = 1},
                    {.kind = RungKind::explainer, .attempts = 1, .grant = {.rounds = 1}},
                    {.kind = RungKind::specialist, .attempts = 1, .grant = {.rounds = 1}}};
  const Services services{.model = &model, .specialist = &specialist, .explainer = &explainer, .checker = &checker};
  const auto asks = [](Purpose purpose, Writer writer) {
    return [=](const Event& event) {
      const auto* started = std::get_if<RoundStarted>(&event);
      return started != nullptr && started->purpose == purpose && started->writer == writer;
    };
  };
  ASSERT_TRUE(happens(task, options, services, asks(Purpose::explanation, Writer::explainer)));
  ASSERT_TRUE(happens(task, options, services, asks(Purpose::repair, Writer::specialist)));
  ASSERT_TRUE(happens(task, options, services, [](const Event& event) { return std::holds_alternative<Scored>(event); }));
  cut_everywhere(task, options, services);
}

TEST_F(ResumeTest, ACrashWithoutGivenTestsChangesNothing) {
  FunctionGenerator reviewer([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    if (request.messages.back().content.find("assert") != std::string::npos && depth_of(request) == 0) return answer("assert f(1) == 7\n");
    return answer(fenced(program(depth_of(request) == 0 ? 5 : 7), "It should be seven."));
  });
  Task task = make_task();
  task.visible.clear();
  for (const bool own_tests : {false, true}) {
    options.own_tests = own_tests;
    const Services services{.model = &reviewer, .checker = &checker};
    ASSERT_EQ(happens(task, options, services, [](const Event& event) { return std::holds_alternative<TestsWritten>(event); }), own_tests);
    if (!own_tests) {
      ASSERT_TRUE(happens(task, options, services, [](const Event& event) {
        const auto* started = std::get_if<RoundStarted>(&event);
        return started != nullptr && started->purpose == Purpose::review;
      }));
    }
    cut_everywhere(task, options, services);
  }
}

TEST_F(ResumeTest, ASolvedSessionIsNotRunAgain) {
  const TestFolder folder;
  const auto journal = *Journal::open(folder.file("j.db"));
  FunctionGenerator solver([](const GenerateRequest&, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    return answer(fenced(program(7)));
  });
  Loop loop({.model = &solver, .checker = &checker, .journal = journal.get()});
  const auto result = loop.run(make_task(), options, {}, {});
  ASSERT_TRUE(result.has_value());
  const auto again = loop.resume(result->session, {}, {});
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().kind, LoopError::Kind::finished);
  EXPECT_EQ(loop.resume("nobody", {}, {}).error().kind, LoopError::Kind::unknown);
}

TEST_F(ResumeTest, TwoCanNotRunOneSession) {
  const TestFolder folder;
  const auto journal = *Journal::open(folder.file("j.db"));
  const auto held = journal->lock("s");
  ASSERT_TRUE(held.has_value());
  Loop loop({.model = &model, .checker = &checker, .journal = journal.get()});
  const auto result = loop.run(make_task(), options, {}, {}, "s");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, LoopError::Kind::busy);
}

TEST_F(ResumeTest, ReplayNoticesEveryChangeOfTheRecord) {
  const TestFolder folder;
  const auto journal = *Journal::open(folder.file("j.db"));
  (void)run(*journal, "s");
  const std::vector<Stamped> recorded = *journal->events("s");
  EXPECT_TRUE(replay(recorded).identical());
  const auto changed = [&](auto change) {
    std::vector<Stamped> copy = recorded;
    for (Stamped& stamped : copy) {
      if (change(stamped.event)) break;
    }
    return !replay(copy).identical();
  };
  EXPECT_TRUE(changed([](Event& event) {
    auto* it = std::get_if<ProgramWritten>(&event);
    if (it != nullptr) it->program += "#";
    return it != nullptr;
  }));
  EXPECT_TRUE(changed([](Event& event) {
    auto* it = std::get_if<GenerationStarted>(&event);
    if (it != nullptr) ++it->ask.seed;
    return it != nullptr;
  }));
  EXPECT_TRUE(changed([](Event& event) {
    auto* it = std::get_if<Generated>(&event);
    if (it != nullptr) it->text += " ";
    return it != nullptr;
  }));
  EXPECT_TRUE(changed([](Event& event) {
    auto* it = std::get_if<Checked>(&event);
    if (it != nullptr) it->judgement.failures.at(0).actual = "9";
    return it != nullptr;
  }));
  EXPECT_TRUE(changed([](Event& event) {
    auto* it = std::get_if<Ended>(&event);
    if (it != nullptr) it->best = 99;
    return it != nullptr;
  }));
  std::vector<Stamped> missing = recorded;
  missing.erase(missing.begin() + 3);
  EXPECT_FALSE(replay(missing).identical());
}

}  // namespace
}  // namespace fixpoint::agent
