#include "tests/agent/loop_fixture.h"

#include "agent/prompt.h"
#include "agent/replay.h"

namespace fixpoint::agent {
namespace {

using std::chrono::milliseconds;

/// A loop over answers that depend on the depth of the conversation.
struct LoopTest : ::testing::Test {
  std::vector<std::string> answers;
  FunctionGenerator model{[this](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    const auto depth = static_cast<std::size_t>(depth_of(request));
    return answer(answers.at(std::min(depth, answers.size() - 1)), std::min<std::int64_t>(10, request.max_tokens));
  }};
  NumberChecker checker;
  Events events;
  LoopOptions options{.ladder = {}};

  Result run(const Task& task = make_task(), Budget* batch = nullptr) {
    Loop loop({.model = &model, .checker = &checker}, batch);
    auto result = loop.run(task, options, {}, events.sink());
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().detail);
    const ReplayReport replayed = replay(events.all);
    EXPECT_TRUE(replayed.identical()) << replayed.difference;
    return *std::move(result);
  }
};

TEST_F(LoopTest, PassAtOnceNeedsOneGenerationAndNoRound) {
  answers = {fenced(program(7))};
  const Result result = run();
  EXPECT_EQ(result.end.outcome, Outcome::solved);
  EXPECT_EQ(result.end.basis, Basis::tests);
  EXPECT_EQ(result.program, program(7));
  EXPECT_EQ(result.end.spent.rounds, 0);
  EXPECT_EQ(model.requests().size(), 1U);
  EXPECT_EQ(events.of<Ended>().size(), 1U);
}

TEST_F(LoopTest, ALanguageThatNobodyCanJudgeIsRefusedBeforeAnythingIsSpent) {
  Task task = make_task();
  task.language = "cobol";
  const auto result = Loop({.model = &model, .checker = &checker}).run(task, {}, {}, events.sink());
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, LoopError::Kind::invalid);
  EXPECT_EQ(result.error().detail, "no sandbox for cobol");
  EXPECT_TRUE(model.requests().empty());
}

TEST_F(LoopTest, EventsAreNumberedWithoutGaps) {
  answers = {fenced(program(1)), fenced(program(7))};
  (void)run();
  for (std::size_t i = 0; i < events.all.size(); ++i) EXPECT_EQ(events.all[i].seq, static_cast<std::int64_t>(i + 1));
}

TEST_F(LoopTest, PassesAtEachRound) {
  for (int rounds = 1; rounds <= 3; ++rounds) {
    answers.clear();
    for (int i = 0; i < rounds; ++i) answers.push_back(fenced(program(i), "Wrong number."));
    answers.push_back(fenced(program(7)));
    events.all.clear();
    const Result result = run();
    EXPECT_EQ(result.end.outcome, Outcome::solved);
    EXPECT_EQ(result.end.spent.rounds, rounds);
    EXPECT_EQ(result.program, program(7));
  }
}

TEST_F(LoopTest, RoundsEndWithTheBestProgramAndNotTheLast) {
  answers = {fenced(program(1)), fenced(program(6)), fenced(program(2)), fenced(program(3))};
  const Result result = run();
  EXPECT_EQ(result.end.outcome, Outcome::budget_exhausted);
  EXPECT_EQ(result.end.detail, "no repair rounds are left");
  EXPECT_EQ(result.end.spent.rounds, 3);
  EXPECT_EQ(result.program, program(6));
}

TEST_F(LoopTest, RepairContinuesTheConversationAndKeepsItsBeginning) {
  answers = {fenced(program(1)), fenced(program(2), "I returned the wrong number."), fenced(program(7))};
  (void)run();
  const auto requests = model.requests();
  ASSERT_EQ(requests.size(), 3U);
  for (std::size_t i = 1; i < requests.size(); ++i) {
    const auto& before = requests[i - 1].messages;
    const auto& now = requests[i].messages;
    ASSERT_EQ(now.size(), before.size() + 2);
    for (std::size_t m = 0; m < before.size(); ++m) EXPECT_EQ(now[m].content, before[m].content);
    EXPECT_EQ(now[before.size()].content, answers[i - 1]);
  }
  EXPECT_EQ(events.of<Explained>().at(0).text, "I returned the wrong number.");
}

TEST_F(LoopTest, FeedbackHoldsTheFailingTestItsValueAndTheTrace) {
  answers = {fenced(program(1)), fenced(program(7))};
  (void)run();
  EXPECT_EQ(model.requests().at(1).messages.back().content,
            "The tests failed.\n"
            "assert f(1) == 7\n"
            "got 1\n"
            "assert f(2) == 7\n"
            "got 1\n"
            "trace:\n"
            "return 1  # returns 1\n"
            "Explain what is wrong, then answer with the corrected program.");
}

TEST_F(LoopTest, TokensEndTheLoopAndAreNeverOverrun) {
  answers = {fenced(program(1)), fenced(program(2)), fenced(program(3)), fenced(program(4))};
  options.task.tokens = 25;
  const Result result = run();
  EXPECT_EQ(result.end.outcome, Outcome::budget_exhausted);
  EXPECT_EQ(result.end.detail, "no tokens are left");
  EXPECT_EQ(result.end.spent.tokens, 25);
  EXPECT_EQ(model.requests().back().max_tokens, 5);
}

TEST_F(LoopTest, WallTimeEndsTheLoop) {
  answers = {fenced(program(1)), fenced(program(2)), fenced(program(3)), fenced(program(4))};
  options.task.wall = milliseconds(14);  // 5 for a generation, 3 for a check
  const Result result = run();
  EXPECT_EQ(result.end.outcome, Outcome::budget_exhausted);
  EXPECT_EQ(result.end.detail, "no time is left");
  EXPECT_EQ(model.requests().at(1).timeout, milliseconds(6));
}

TEST_F(LoopTest, SandboxTimeEndsTheLoop) {
  answers = {fenced(program(1)), fenced(program(2)), fenced(program(3)), fenced(program(4))};
  options.task.sandbox = milliseconds(6);
  const Result result = run();
  EXPECT_EQ(result.end.outcome, Outcome::budget_exhausted);
  EXPECT_EQ(result.end.detail, "no sandbox time is left");
  EXPECT_EQ(checker.calls, 2);
}

TEST_F(LoopTest, ABatchBudgetStandsAboveTheTasks) {
  answers = {fenced(program(1)), fenced(program(2)), fenced(program(3)), fenced(program(4))};
  Amounts limits = kUnlimited;
  limits.tokens = 55;
  Budget batch(limits);
  EXPECT_EQ(run(make_task(), &batch).end.spent.tokens, 40);
  events.all.clear();
  const Result second = run(make_task(), &batch);
  EXPECT_EQ(second.end.outcome, Outcome::budget_exhausted);
  EXPECT_EQ(second.end.spent.tokens, 15);
  EXPECT_EQ(batch.spent().tokens, 55);
}

TEST_F(LoopTest, ARepairPredictsTheProgramUnderRepair) {
  answers = {fenced(program(1)), fenced(program(6)), fenced(program(7))};
  run();
  const auto requests = model.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].prediction, "");
  EXPECT_NE(requests[1].prediction.find("return 1"), std::string::npos);
  EXPECT_NE(requests[2].prediction.find("return 6"), std::string::npos);
}

TEST_F(LoopTest, ParallelDraftsShareTheirPromptAndTheBestGoesOn) {
  FunctionGenerator drafts([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    if (depth_of(request) > 0) return answer(fenced(program(7)));
    return answer(fenced(program(request.temperature > 0 ? 6 : 1)));
  });
  options.drafts = 3;
  Loop loop({.model = &drafts, .checker = &checker});
  const auto result = loop.run(make_task(), options, {}, events.sink());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->end.outcome, Outcome::solved);
  const auto requests = drafts.requests();
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_EQ(requests[0].messages.front().content, requests[1].messages.front().content);
  EXPECT_EQ(requests[0].messages.front().content, requests[2].messages.front().content);
  EXPECT_EQ(requests[3].messages.at(1).content, fenced(program(6)));
  const ReplayReport replayed = replay(events.all);
  EXPECT_TRUE(replayed.identical()) << replayed.difference;
}

TEST_F(LoopTest, APassingDraftSparesTheChecksOfTheOthers) {
  answers = {fenced(program(7))};
  options.drafts = 4;
  EXPECT_EQ(run().end.outcome, Outcome::solved);
  EXPECT_EQ(checker.calls, 1);
}

TEST_F(LoopTest, AnEmptyAnswerIsToldAndRepaired) {
  answers = {"", fenced(program(7))};
  const Result result = run();
  EXPECT_EQ(result.end.outcome, Outcome::solved);
  const auto messages = model.requests().at(1).messages;
  EXPECT_EQ(messages.at(1).content, "(no answer)");
  EXPECT_TRUE(messages.back().content.starts_with("No program was found in the answer.")) << messages.back().content;
}

TEST_F(LoopTest, AModelThatWritesNothingAtAllEnds) {
  answers = {""};
  const Result result = run();
  EXPECT_EQ(result.end.outcome, Outcome::stuck);
  EXPECT_EQ(result.program, "");
  EXPECT_FALSE(result.end.best.has_value());
}

TEST_F(LoopTest, TenMegabytesAreCutAndDoNotReachThePrompt) {
  const auto flood = make_scripted_generator({{.text = "def f(x):\n    return 1\n" + std::string(10'000'000, '#'), .tokens = 100},
                                              {.text = fenced(program(7))}});
  Loop loop({.model = flood.get(), .checker = &checker});
  const auto result = loop.run(make_task(), options, {}, events.sink());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->end.outcome, Outcome::solved);
  const Round& first = result->progress.attempts.front();
  EXPECT_LE(first.text.size(), std::size_t{1} << 20);
  EXPECT_EQ(first.finish, Finish::length);
  const auto messages = messages_for(result->progress, result->progress.attempts.back().ask);
  EXPECT_LT(messages.at(1).content.size(), 20'000U);
  EXPECT_NE(messages.at(1).content.find("bytes left out"), std::string::npos);
}

TEST_F(LoopTest, BrokenUtf8IsMadeValid) {
  answers = {fenced("def f(x):\n    return 7 # \xFF\xFE\n")};
  const Result result = run();
  EXPECT_EQ(result.end.outcome, Outcome::solved);
  EXPECT_NE(result.program.find("\xEF\xBF\xBD"), std::string::npos);
}

TEST_F(LoopTest, HiddenTestsOnlyScore) {
  Task task = make_task();
  task.hidden = {{Assertion{"assert f(3) == 7"}}, {Assertion{"assert f(4) == 7"}}, {Assertion{"assert f(5) == 7"}}};
  answers = {fenced(program(7))};
  (void)run(task);
  const auto scored = events.of<Scored>();
  ASSERT_EQ(scored.size(), 1U);
  EXPECT_EQ(scored[0].judgement.total, 3);
  for (const GenerateRequest& request : model.requests()) {
    for (const Message& message : request.messages) EXPECT_EQ(message.content.find("f(3)"), std::string::npos);
  }
  EXPECT_EQ(events.of<Ended>().at(0).spent.sandbox, milliseconds(3));
}

TEST_F(LoopTest, WithoutTestsAReviewThatAcceptsIsTheBasis) {
  Task task = make_task();
  task.visible.clear();
  answers = {fenced(program(1)), "It gives back one number for every x, as asked. CORRECT"};
  const Result result = run(task);
  EXPECT_EQ(result.end.outcome, Outcome::solved);
  EXPECT_EQ(result.end.basis, Basis::review);
  EXPECT_EQ(result.program, program(1));
}

TEST_F(LoopTest, WithoutTestsAReviewMayReplaceTheProgram) {
  Task task = make_task();
  task.visible.clear();
  answers = {fenced(program(1)), fenced(program(2), "One is not seven."), fenced(program(2))};
  const Result result = run(task);
  EXPECT_EQ(result.end.outcome, Outcome::solved);
  EXPECT_EQ(result.end.basis, Basis::review);
  EXPECT_EQ(result.program, program(2));
}

TEST_F(LoopTest, WithoutTestsAProgramThatDoesNotLoadIsRepairedFirst) {
  Task task = make_task();
  task.visible.clear();
  answers = {fenced("def f(x:\n"), fenced(program(3)), "CORRECT."};
  const Result result = run(task);
  EXPECT_EQ(result.end.outcome, Outcome::solved);
  EXPECT_TRUE(model.requests().at(1).messages.back().content.starts_with("The program does not compile.\nSyntaxError"));
}

TEST_F(LoopTest, OwnTestsStandInForMissingOnesAndAreMarked) {
  Task task = make_task();
  task.visible.clear();
  options.own_tests = true;
  FunctionGenerator writer([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    if (request.messages.back().content.find("`assert` statements") != std::string::npos) {
      return answer("assert f(1) == 7\nassert f(2) == 7\n");
    }
    return answer(fenced(program(depth_of(request) == 0 ? 1 : 7)));
  });
  Loop loop({.model = &writer, .checker = &checker});
  const auto result = loop.run(task, options, {}, events.sink());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->end.outcome, Outcome::solved);
  EXPECT_EQ(result->end.basis, Basis::own_tests);
  ASSERT_EQ(result->progress.own_tests.size(), 2U);
  EXPECT_EQ(result->progress.own_tests[0].origin, TestOrigin::model);
  EXPECT_EQ(result->end.spent.rounds, 1);
  for (const GenerateRequest& request : writer.requests()) {
    const bool tests = request.messages.back().content.find("`assert` statements") != std::string::npos;
    EXPECT_EQ(request.program_start.has_value(), !tests) << "a draft and a repair begin with the function's name, tests do not";
  }
}

TEST_F(LoopTest, AModelThatIsUnavailableIsAskedThreeTimes) {
  int calls = 0;
  FunctionGenerator broken([&calls](const GenerateRequest&, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    ++calls;
    return tl::unexpected(GenerateError{.kind = GenerateError::Kind::unavailable, .detail = "connection refused"});
  });
  Loop loop({.model = &broken, .checker = &checker});
  const auto result = loop.run(make_task(), options, {}, events.sink());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->end.outcome, Outcome::failed);
  EXPECT_NE(result->end.detail.find("connection refused"), std::string::npos);
  EXPECT_EQ(calls, 3);
}

TEST_F(LoopTest, ARefusalEndsAtOnceButKeepsTheBestProgram) {
  FunctionGenerator refusing([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    if (depth_of(request) == 0) return answer(fenced(program(6)));
    return tl::unexpected(GenerateError{.kind = GenerateError::Kind::refused, .detail = "HTTP 401"});
  });
  Loop loop({.model = &refusing, .checker = &checker});
  const auto result = loop.run(make_task(), options, {}, events.sink());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->end.outcome, Outcome::failed);
  EXPECT_EQ(result->program, program(6));
}

TEST_F(LoopTest, APromptThatIsTooLongIsAskedAgainWithoutTheMiddle) {
  FunctionGenerator small([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    if (request.messages.size() > 3) {
      return tl::unexpected(GenerateError{.kind = GenerateError::Kind::too_long, .detail = "5000 tokens"});
    }
    const std::string& last = request.messages.back().content;
    if (last.find("got 2") != std::string::npos) return answer(fenced(program(7)));
    return answer(fenced(program(depth_of(request) + 1)));
  });
  Loop loop({.model = &small, .checker = &checker});
  const auto result = loop.run(make_task(), options, {}, events.sink());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->end.outcome, Outcome::solved);
  EXPECT_EQ(result->end.spent.rounds, 2);
  const ReplayReport replayed = replay(events.all);
  EXPECT_TRUE(replayed.identical()) << replayed.difference;
}

TEST_F(LoopTest, ASandboxThatDoesNotWorkIsNeverAPass) {
  answers = {fenced(program(7))};
  const auto broken = make_scripted_checker({tl::unexpected(CheckError{CheckError::Kind::infrastructure, "no namespaces"})});
  Loop loop({.model = &model, .checker = broken.get()});
  const auto result = loop.run(make_task(), options, {}, events.sink());
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->end.outcome, Outcome::failed);
  EXPECT_EQ(events.of<CheckFailed>().size(), 3U);
  EXPECT_NE(result->end.detail.find("no namespaces"), std::string::npos);
}

TEST_F(LoopTest, WrongOptionsAndTasksAreRefusedBeforeAnythingRuns) {
  Loop loop({.model = &model, .checker = &checker});
  const auto refused = [&](const Task& task, const LoopOptions& it) {
    const auto result = loop.run(task, it, {}, {});
    return !result && result.error().kind == LoopError::Kind::invalid;
  };
  EXPECT_TRUE(refused(Task{}, options));
  EXPECT_TRUE(refused(make_task(), {.task = {.rounds = 11}}));
  EXPECT_TRUE(refused(make_task(), {.drafts = 0}));
  EXPECT_TRUE(refused(make_task(), {.ladder = {{.kind = RungKind::specialist}}}));
  EXPECT_TRUE(model.requests().empty());
}

}  // namespace
}  // namespace fixpoint::agent
