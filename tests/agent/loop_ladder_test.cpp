#include "agent/handover.h"
#include "agent/replay.h"
#include "tests/agent/loop_fixture.h"

namespace fixpoint::agent {
namespace {

using Function = FunctionGenerator::Function;

/// Loops that get stuck, and what then happens, with a journal on disk.
struct LadderTest : ::testing::Test {
  TestFolder folder;
  std::unique_ptr<Journal> journal = *Journal::open(folder.file("journal.db"));
  NumberChecker checker;
  Events events;
  LoopOptions options;

  std::vector<StuckReason> reasons() const {
    std::vector<StuckReason> found;
    for (const Stuck& stuck : events.of<Stuck>()) found.push_back(stuck.reason);
    return found;
  }
  void expect_replay(const std::string& session) {
    const auto recorded = journal->events(session);
    ASSERT_TRUE(recorded.has_value());
    const ReplayReport report = replay(*recorded);
    EXPECT_TRUE(report.identical()) << report.difference;
  }
  Result run(Services services) {
    services.checker = &checker;
    services.journal = journal.get();
    Loop loop(services);
    auto result = loop.run(make_task(), options, {}, events.sink());
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().detail);
    expect_replay(result->session);
    return *std::move(result);
  }
  Result resume(Services services, const std::string& session) {
    services.checker = &checker;
    services.journal = journal.get();
    Loop loop(services);
    auto result = loop.resume(session, {}, events.sink());
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().detail);
    expect_replay(session);
    return *std::move(result);
  }
};

tl::expected<Generation, GenerateError> always_one(const GenerateRequest&, const std::stop_token&) {
  return answer(fenced(program(1)));
}

TEST_F(LadderTest, TheSameProgramIsDrawnAnewFromTheSamePlaceAtTheCostOfNoRound) {
  FunctionGenerator model([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    return answer(fenced(program(request.temperature > 0 ? 7 : 1) + "# " + std::to_string(depth_of(request)) + "\n"));
  });
  options.task.rounds = 1;
  const Result result = run({.model = &model});
  EXPECT_EQ(result.end.outcome, Outcome::solved);
  EXPECT_EQ(result.end.spent.rounds, 1);
  EXPECT_EQ(result.end.spent.tokens, 30);
  EXPECT_EQ(reasons(), std::vector<StuckReason>{StuckReason::same_program});
  EXPECT_TRUE(events.of<Climbed>().empty());
  const auto requests = model.requests();
  ASSERT_EQ(requests.size(), 3U);
  ASSERT_EQ(requests[2].messages.size(), requests[1].messages.size());
  EXPECT_EQ(requests[2].messages.back().content, requests[1].messages.back().content);
  EXPECT_GT(requests[2].temperature, 0.0);
  EXPECT_NE(requests[2].seed, requests[1].seed);
}

TEST_F(LadderTest, WhatRepeatsItselfWhenDrawnAgainIsDrawnOnceMoreAndHotter) {
  FunctionGenerator model([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    return answer(fenced(program(request.temperature > 1.0 ? 7 : 1)));
  });
  options.task.rounds = 1;
  EXPECT_EQ(run({.model = &model}).end.outcome, Outcome::solved);
  EXPECT_EQ(model.requests().size(), 4U);
}

TEST_F(LadderTest, AfterTwoDrawsInVainThereIsAFreshDraftWhichIsDrawnAgainLikewise) {
  FunctionGenerator model(Function{always_one});
  options.task.rounds = 2;
  const Result result = run({.model = &model});
  EXPECT_EQ(result.end.outcome, Outcome::budget_exhausted);
  EXPECT_EQ(result.end.spent.rounds, 2);
  std::vector<int> depths;
  for (const GenerateRequest& request : model.requests()) depths.push_back(depth_of(request));
  EXPECT_EQ(depths, (std::vector<int>{0, 1, 1, 1, 0, 0, 0}));
}

TEST_F(LadderTest, AFreshDraftThatIsNewWhenDrawnAgainIsRepairedNext) {
  // The repair repeats the first draft whatever is asked; of the fresh drafts the second is new, and no better.
  std::atomic<int> fresh = 0;
  FunctionGenerator model([&](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    const bool other = depth_of(request) == 0 && request.temperature > 0 && ++fresh == 2;
    return answer(fenced(program(other ? 2 : 1)));
  });
  options.task.rounds = 3;
  (void)run({.model = &model});
  const std::vector<Message> last = model.requests().back().messages;
  ASSERT_EQ(last.size(), 3U);
  EXPECT_NE(last[1].content.find("return 2"), std::string::npos);
}

TEST_F(LadderTest, AHintIsRepeatedWhenItsRepairIsDrawnAgain) {
  options.ladder = {{.kind = RungKind::person}};
  FunctionGenerator model([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    const bool hinted = request.messages.back().content.find("Hint: seven") != std::string::npos;
    return answer(fenced(program(hinted && request.temperature > 0 ? 7 : 1)));
  });
  const Result handed = run({.model = &model});
  ASSERT_EQ(handed.end.outcome, Outcome::handed_over);
  ASSERT_TRUE(journal->give_hint(handed.end.escalation, {.by = "ada", .text = "seven", .grant = {.rounds = 1}}).has_value());
  EXPECT_EQ(resume({.model = &model}, handed.session).end.outcome, Outcome::solved);
}

TEST_F(LadderTest, TheSameFailureOfAnotherProgramBranchesToo) {
  FunctionGenerator model([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    if (request.temperature > 0) return answer(fenced(program(7)));
    return answer(fenced("y = " + std::to_string(depth_of(request)) + "\n" + program(1)));
  });
  EXPECT_EQ(run({.model = &model}).end.outcome, Outcome::solved);
  EXPECT_EQ(reasons(), std::vector<StuckReason>{StuckReason::same_failure});
  EXPECT_EQ(model.requests().back().messages.size(), 5U);
}

TEST_F(LadderTest, GoingBackAndForthIsDrawnAgainAndThenStartsAFreshDraft) {
  FunctionGenerator model([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    if (request.temperature > 0 && depth_of(request) == 0) return answer(fenced(program(7)));
    return answer(fenced(program(depth_of(request) % 2 + 1)));
  });
  EXPECT_EQ(run({.model = &model}).end.outcome, Outcome::solved);
  EXPECT_EQ(reasons(), std::vector<StuckReason>(3, StuckReason::oscillation));
  std::vector<std::size_t> lengths;
  for (const GenerateRequest& request : model.requests()) lengths.push_back(request.messages.size());
  EXPECT_EQ(lengths, (std::vector<std::size_t>{1, 3, 5, 5, 5, 1}));
}

TEST_F(LadderTest, TheTraceIsAddedWhenABranchBegins) {
  options.feedback = {.unit_test = true, .explanation = false, .trace = false};
  FunctionGenerator model(Function{always_one});
  (void)run({.model = &model});
  const auto requests = model.requests();
  EXPECT_EQ(requests.at(1).messages.back().content.find("trace:"), std::string::npos);
  EXPECT_EQ(requests.at(1).messages.back().content.find("Explain"), std::string::npos);
}

TEST_F(LadderTest, AStuckLoopWithoutAFurtherRungEndsAsStuck) {
  FunctionGenerator model(Function{always_one});
  options.task.rounds = 8;
  const Result result = run({.model = &model});
  EXPECT_EQ(result.end.outcome, Outcome::stuck);
  EXPECT_EQ(events.of<Climbed>().size(), 1U);
  EXPECT_EQ(result.program, program(1));
}

TEST_F(LadderTest, ASpecialistCodesWithTheRoundsItWasGranted) {
  FunctionGenerator model(Function{always_one});
  FunctionGenerator specialist([](const GenerateRequest&, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    return answer(fenced(program(7)));
  });
  options.task.rounds = 1;
  options.ladder = {{.kind = RungKind::specialist, .attempts = 1, .grant = {.rounds = 1}}};
  const Result result = run({.model = &model, .specialist = &specialist});
  EXPECT_EQ(result.end.outcome, Outcome::solved);
  EXPECT_EQ(result.end.spent.rounds, 2);
  EXPECT_EQ(result.progress.attempts.back().ask.writer, Writer::specialist);
  EXPECT_EQ(events.of<Climbed>().at(0).grant.rounds, 1);
}

TEST_F(LadderTest, AnExplainersWordsReachTheModelsNextRepair) {
  FunctionGenerator model([](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    const bool advised = request.messages.back().content.find("A reviewer says: Say seven.") != std::string::npos;
    return answer(fenced(program(advised ? 7 : 1)));
  });
  FunctionGenerator explainer([](const GenerateRequest&, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    return answer("Say seven.");
  });
  options.ladder = {{.kind = RungKind::explainer, .attempts = 2}};
  const Result result = run({.model = &model, .explainer = &explainer});
  EXPECT_EQ(result.end.outcome, Outcome::solved);
  EXPECT_EQ(explainer.requests().size(), 1U);
  EXPECT_TRUE(explainer.requests()[0].messages.back().content.ends_with("Do not write a program."));
}

TEST_F(LadderTest, AHelperThatDoesNotWorkIsPassedOver) {
  FunctionGenerator model(Function{always_one});
  FunctionGenerator broken([](const GenerateRequest&, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    return tl::unexpected(GenerateError{.kind = GenerateError::Kind::refused, .detail = "no such model"});
  });
  options.ladder = {{.kind = RungKind::explainer, .attempts = 2}, {.kind = RungKind::person}};
  const Result result = run({.model = &model, .explainer = &broken});
  EXPECT_EQ(result.end.outcome, Outcome::handed_over);
}

struct HandOverTest : LadderTest {
  FunctionGenerator model{[](const GenerateRequest& request, const std::stop_token&) -> tl::expected<Generation, GenerateError> {
    const bool hinted = request.messages.back().content.find("Hint: seven") != std::string::npos;
    return answer(fenced(program(hinted ? 7 : 1), "I do not know."));
  }};
  HandOverTest() { options.ladder = {{.kind = RungKind::branch, .attempts = 1}, {.kind = RungKind::person}}; }
};

TEST_F(HandOverTest, AHandOverIsOpenAndHoldsWhatAPersonNeeds) {
  const Result result = run({.model = &model});
  EXPECT_EQ(result.end.outcome, Outcome::handed_over);
  const auto row = journal->escalation(result.end.escalation);
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->state, EscalationState::open);
  EXPECT_EQ(row->session, result.session);
  const std::string bundle = handover_markdown(result.progress);
  for (const char* part : {"Give back seven", "return 1", "assert f(1) == 7", "got 1", "I do not know.", "tokens"}) {
    EXPECT_NE(bundle.find(part), std::string::npos) << part;
  }
  EXPECT_NE(handover_json(result.progress).find("\"smallest_failing_test\""), std::string::npos);
}

TEST(HandOverTextTest, AHeadingOfTheStatementIsSaidOnce) {
  Progress progress;
  progress.task.statement = "# Seven\n\nWrite `f(x)`.";
  const std::string heading = handover_markdown(progress);
  EXPECT_TRUE(heading.starts_with("# Seven\n\nWrite `f(x)`.\n\n")) << heading;
  progress.task.statement = "Seven\n\nWrite `f(x)`.";
  const std::string words = handover_markdown(progress);
  EXPECT_TRUE(words.starts_with("# Seven\n\nSeven\n\nWrite `f(x)`.\n\n")) << words;
}

TEST_F(HandOverTest, AHintGoesOnInTheSameSessionWithItsGrant) {
  const Result handed = run({.model = &model});
  ASSERT_TRUE(journal->claim(handed.end.escalation, "ada").has_value());
  EXPECT_FALSE(journal->claim(handed.end.escalation, "bob").has_value());
  ASSERT_TRUE(journal->give_hint(handed.end.escalation, {.by = "ada", .text = "seven", .grant = {.rounds = 2, .tokens = 1'000}}).has_value());
  const Result result = resume({.model = &model}, handed.session);
  EXPECT_EQ(result.end.outcome, Outcome::solved);
  EXPECT_EQ(result.program, program(7));
  EXPECT_EQ(journal->escalation(handed.end.escalation)->state, EscalationState::returned);
  EXPECT_EQ(journal->session(handed.session)->state, "solved");
}

TEST_F(HandOverTest, AHintThatDoesNotHelpIsHandedOverAgain) {
  const Result handed = run({.model = &model});
  ASSERT_TRUE(journal->give_hint(handed.end.escalation, {.by = "ada", .text = "think", .grant = {.rounds = 1}}).has_value());
  const Result result = resume({.model = &model}, handed.session);
  EXPECT_EQ(result.end.outcome, Outcome::handed_over);
  EXPECT_NE(result.end.escalation, handed.end.escalation);
}

TEST_F(HandOverTest, AfterAHintTheLadderHelpsAnewButGrantsNothingTwice) {
  FunctionGenerator helper(always_one);
  options.ladder = {{.kind = RungKind::branch, .attempts = 1}, {.kind = RungKind::specialist, .attempts = 1, .grant = {.rounds = 1}},
                    {.kind = RungKind::person, .attempts = 1}};
  const Result handed = run({.model = &model, .specialist = &helper});
  ASSERT_EQ(handed.end.outcome, Outcome::handed_over);
  ASSERT_TRUE(journal->give_hint(handed.end.escalation, {.by = "ada", .text = "think", .grant = {.rounds = 9, .tokens = 9'000}}).has_value());
  events = {};
  const Result result = resume({.model = &model, .specialist = &helper}, handed.session);
  EXPECT_EQ(result.end.outcome, Outcome::handed_over);
  const auto climbed = events.of<Climbed>();
  ASSERT_EQ(climbed.size(), 3U);
  EXPECT_EQ(climbed[0].kind, RungKind::branch);
  EXPECT_EQ(climbed[1].kind, RungKind::specialist);
  EXPECT_EQ(climbed[1].grant, Amounts{});
}

TEST(LadderTextTest, IsReadOrRefusedWithItsReason) {
  const auto ladder = parse_ladder("branch:2,explainer:2+1,specialist:3+2,person");
  ASSERT_TRUE(ladder.has_value()) << ladder.error();
  const std::vector<Rung> expected{{.kind = RungKind::branch, .attempts = 2},
                                   {.kind = RungKind::explainer, .attempts = 2, .grant = {.rounds = 1}},
                                   {.kind = RungKind::specialist, .attempts = 3, .grant = {.rounds = 2}},
                                   {.kind = RungKind::person, .attempts = 1}};
  EXPECT_EQ(*ladder, expected);
  EXPECT_TRUE(parse_ladder("")->empty());
  for (const char* bad : {"boss", "branch:", "branch:0", "branch:x", "branch:2+", "branch:2+99", "person,branch", "branch,,person"}) {
    EXPECT_FALSE(parse_ladder(bad).has_value()) << bad;
  }
}

TEST_F(HandOverTest, APersonsProgramIsRunLikeAnyOther) {
  const Result handed = run({.model = &model});
  const ProgramSubmitted wrong{.by = "ada", .program = program(5), .grant = {.wall = std::chrono::seconds(9), .sandbox = std::chrono::seconds(9)}};
  ASSERT_TRUE(journal->submit(handed.end.escalation, wrong).has_value());
  const Result still = resume({.model = &model}, handed.session);
  EXPECT_EQ(still.end.outcome, Outcome::handed_over);
  EXPECT_EQ(still.end.escalation, handed.end.escalation);
  EXPECT_EQ(journal->escalation(handed.end.escalation)->state, EscalationState::open);

  ProgramSubmitted right = wrong;
  right.program = program(7);
  ASSERT_TRUE(journal->submit(handed.end.escalation, right).has_value());
  const Result solved = resume({.model = &model}, handed.session);
  EXPECT_EQ(solved.end.outcome, Outcome::solved);
  EXPECT_EQ(solved.program, program(7));
  EXPECT_EQ(solved.progress.attempts.back().ask.writer, Writer::person);
  EXPECT_EQ(journal->escalation(handed.end.escalation)->state, EscalationState::solved_by_hand);
  EXPECT_FALSE(journal->submit(handed.end.escalation, right).has_value());
}

TEST_F(HandOverTest, ADeclinedSessionEndsWithItsBestProgram) {
  const Result handed = run({.model = &model});
  ASSERT_TRUE(journal->decline(handed.end.escalation, {.by = "ada", .reason = "unclear task"}).has_value());
  const Result result = resume({.model = &model}, handed.session);
  EXPECT_EQ(result.end.outcome, Outcome::declined);
  EXPECT_EQ(result.program, program(1));
  EXPECT_EQ(journal->escalation(handed.end.escalation)->state, EscalationState::declined);
}

TEST_F(HandOverTest, AWaitingSessionIsNotResumedWithoutAnAnswer) {
  const Result handed = run({.model = &model});
  Loop loop({.model = &model, .checker = &checker, .journal = journal.get()});
  const auto result = loop.resume(handed.session, {}, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, LoopError::Kind::finished);
  EXPECT_NE(result.error().detail.find(handed.end.escalation), std::string::npos);
}

}  // namespace
}  // namespace fixpoint::agent
