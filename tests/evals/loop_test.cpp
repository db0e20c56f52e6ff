#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <sstream>

#include "agent/prompt.h"
#include "evals/loop_bench.h"
#include "evals/loop_recording.h"
#include "evals/loop_workload.h"

namespace fixpoint::evals {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(LoopWorkloadTest, TheSameSeedGivesTheSameBytesAndAnotherSeedOthers) {
  const LoopShape shape{.sessions = 3, .seed = 7};
  EXPECT_EQ(generate_loop(shape, guessed_tokens), generate_loop(shape, guessed_tokens));
  LoopShape other = shape;
  other.seed = 8;
  EXPECT_NE(generate_loop(shape, guessed_tokens).shared, generate_loop(other, guessed_tokens).shared);
}

TEST(LoopWorkloadTest, ASessionIsTheSameHoweverManyOthersThereAre) {
  const auto few = generate_loop({.sessions = 2}, guessed_tokens);
  const auto many = generate_loop({.sessions = 9}, guessed_tokens);
  EXPECT_EQ(few.shared, many.shared);
  EXPECT_EQ(few.sessions[1], many.sessions[1]);
  EXPECT_NE(many.sessions[0].rounds[0].ask, many.sessions[1].rounds[0].ask);
}

TEST(LoopWorkloadTest, SizesAreMetWithinALine) {
  const LoopShape shape{.sessions = 1, .rounds = 2, .shared_tokens = 500, .task_tokens = 60, .attempt_tokens = 120, .feedback_tokens = 80};
  const auto workload = generate_loop(shape, guessed_tokens);
  EXPECT_GE(guessed_tokens(workload.shared), 450);  // lines are counted one by one, each rounded up
  EXPECT_LE(guessed_tokens(workload.shared), 530);
  EXPECT_NEAR(static_cast<double>(guessed_tokens(workload.sessions[0].rounds[1].attempt)), 120, 30);
  EXPECT_EQ(workload.sessions[0].rounds[1].tokens, 120);
}

TEST(LoopWorkloadTest, TheEditRateIsKeptOverTheRounds) {
  for (const double rate : {0.0, 0.05, 0.3, 1.0}) {
    const auto workload = generate_loop({.sessions = 4, .rounds = 11, .attempt_tokens = 300, .edit_rate = rate}, guessed_tokens);
    for (const LoopSession& session : workload.sessions) {
      std::size_t edits = 0;
      const std::size_t lines = lines_of(session.rounds[0].attempt).size();
      for (std::size_t i = 1; i < session.rounds.size(); ++i) {
        const auto before = lines_of(session.rounds[i - 1].attempt), after = lines_of(session.rounds[i].attempt);
        ASSERT_EQ(before.size(), after.size());
        for (std::size_t k = 0; k < after.size(); ++k) edits += before[k] != after[k] ? 1U : 0U;
      }
      EXPECT_NEAR(static_cast<double>(edits), rate * 10 * static_cast<double>(lines), 1.0) << rate;
    }
  }
}

TEST(LoopWorkloadTest, EveryPromptBeginsWithTheSharedContextAndWithTheRoundBefore) {
  const auto workload = generate_loop({.sessions = 2, .rounds = 3}, guessed_tokens);
  for (const LoopSession& session : workload.sessions) {
    for (std::size_t round = 0; round < 3; ++round) {
      EXPECT_TRUE(prompt_text(workload, session, round).starts_with(workload.shared));
      if (round == 0) continue;
      EXPECT_TRUE(prompt_text(workload, session, round).starts_with(prompt_text(workload, session, round - 1) + session.rounds[round - 1].attempt));
    }
    const auto messages = prompt_messages(workload, session, 2);
    ASSERT_EQ(messages.size(), 5U);
    std::string joined;
    for (const auto& message : messages) joined += message.content;
    EXPECT_EQ(joined, prompt_text(workload, session, 2));
    EXPECT_EQ(messages[3].role, agent::Role::assistant);
  }
}

TEST(LoopTraceTest, ATraceReadAgainIsTheSameWorkload) {
  LoopWorkload workload = generate_loop({.sessions = 3, .rounds = 2, .think = milliseconds(70)}, guessed_tokens);
  workload.shared += "quotes \" and \\ and\ttabs, €\n";
  const auto read = parse_trace(to_trace(workload), "t.jsonl");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, workload);
}

TEST(LoopTraceTest, SessionsMayBeInterleaved) {
  const auto read = parse_trace(R"({"fixpoint_loop_trace": 1, "shared": ""}
{"session": "a", "round": 0, "ask": "x", "attempt": "1", "tokens": 3, "think_ms": 0}
{"session": "b", "round": 0, "ask": "y", "attempt": "2", "tokens": 3, "think_ms": 5}
{"session": "a", "round": 1, "ask": "z", "attempt": "3", "tokens": 4, "think_ms": 0}
)", "t.jsonl");
  ASSERT_TRUE(read) << read.error().text();
  ASSERT_EQ(read->sessions.size(), 2U);
  EXPECT_EQ(prompt_text(*read, read->sessions[0], 1), "x1z");
  EXPECT_EQ(read->sessions[1].rounds[0].think, milliseconds(5));
}

TEST(LoopTraceTest, AMalformedLineIsNamedWithFileLineAndField) {
  const std::string head = "{\"fixpoint_loop_trace\": 1, \"shared\": \"\"}\n";
  const std::string good = R"({"session": "a", "round": 0, "ask": "x", "attempt": "1", "tokens": 3, "think_ms": 0})";
  struct Wrong {
    std::string text;
    std::string where;
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string line = good;
    line.replace(line.find(from), from.size(), to);
    return head + good + "\n" + line + "\n";
  };
  for (const auto& [text, where] : std::vector<Wrong>{{good + "\n", "t.jsonl:1: field 'fixpoint_loop_trace'"},
                                                      {"{\"fixpoint_loop_trace\": 2}\n", "t.jsonl:1: field 'fixpoint_loop_trace'"},
                                                      {head + "{\"session\": \n", "t.jsonl:2: "},
                                                      {head + "[]\n", "t.jsonl:2: "},
                                                      {changed("\"ask\": \"x\", ", ""), "t.jsonl:3: field 'ask'"},
                                                      {changed("\"1\"", "1"), "t.jsonl:3: field 'attempt'"},
                                                      {changed("\"tokens\": 3", "\"tokens\": 0"), "t.jsonl:3: field 'tokens'"},
                                                      {changed("\"tokens\": 3", "\"tokens\": 2.5"), "t.jsonl:3: field 'tokens'"},
                                                      {changed("\"think_ms\": 0", "\"think_ms\": -1"), "t.jsonl:3: field 'think_ms'"},
                                                      {changed("\"round\": 0", "\"round\": 2"), "t.jsonl:3: field 'round'"},
                                                      {head, "t.jsonl: "}}) {
    const auto read = parse_trace(text, "t.jsonl");
    ASSERT_FALSE(read) << text;
    EXPECT_THAT(read.error().text(), HasSubstr(where));
  }
}

/// Answers at once and remembers what it was asked.
class FakeTarget final : public LoopTarget {
 public:
  tl::expected<LoopAnswer, std::string> answer(const LoopQuestion& question, std::stop_token) override {
    const std::scoped_lock lock(mutex);
    asked.push_back(question);
    if (question.session == fails) return tl::unexpected(std::string("no"));
    const auto now = std::chrono::steady_clock::now();
    return LoopAnswer{.arrivals = {now, now + milliseconds(2), now + milliseconds(6)}, .usage = {.prompt_tokens = 10, .cached_tokens = 4, .completion_tokens = 4}};
  }
  void end(const std::string& session) override {
    const std::scoped_lock lock(mutex);
    ended.push_back(session);
  }
  std::string name() const override { return "fake"; }
  std::mutex mutex;
  std::vector<LoopQuestion> asked;
  std::vector<std::string> ended;
  std::string fails;
};

TEST(LoopBenchTest, EverySessionAsksItsRoundsInOrderWithTheAttemptBeforeAsPrediction) {
  const auto workload = generate_loop({.sessions = 3, .rounds = 3}, guessed_tokens);
  FakeTarget target;
  const auto run = run_loop(workload, target, {}, {});
  EXPECT_TRUE(run.failures.empty());
  ASSERT_EQ(run.rounds.size(), 9U);
  for (const LoopSession& session : workload.sessions) {
    std::size_t round = 0;
    for (const LoopQuestion& it : target.asked) {
      if (it.session != session.id) continue;
      EXPECT_EQ(std::get<std::string>(it.prompt), prompt_text(workload, session, round));
      EXPECT_EQ(it.prediction, round == 0 ? std::string() : session.rounds[round - 1].attempt);
      EXPECT_EQ(it.tokens, session.rounds[round].tokens);
      ++round;
    }
    EXPECT_EQ(round, 3U);
  }
}

TEST(LoopBenchTest, ASessionThatFailsEndsAndIsNamedAndTheOthersGoOn) {
  const auto workload = generate_loop({.sessions = 3, .rounds = 2}, guessed_tokens);
  FakeTarget target;
  target.fails = "s1";
  const auto run = run_loop(workload, target, {.predict = false}, {});
  EXPECT_THAT(run.failures, ::testing::ElementsAre("session s1, round 0: no"));
  EXPECT_THAT(target.ended, ::testing::UnorderedElementsAre("s0", "s1", "s2"));
  EXPECT_EQ(run.rounds.size(), 4U);
  EXPECT_TRUE(std::all_of(target.asked.begin(), target.asked.end(), [](const LoopQuestion& it) { return it.prediction.empty(); }));
}

TEST(LoopBenchTest, TheSummaryIsWhatItsWordsSay) {
  LoopRun run{.rounds = {}, .wall = std::chrono::seconds(2), .failures = {}};
  const auto round = [](std::size_t number, int asked, std::vector<int> arrivals) {
    MeasuredRound it{.session = 0, .round = number, .tokens = number == 1 ? 6 : 5, .asked = milliseconds(asked), .arrivals = {}, .usage = {.prompt_tokens = 100, .cached_tokens = 50, .completion_tokens = 5}};
    for (const int at : arrivals) it.arrivals.emplace_back(milliseconds(at));
    return it;
  };
  run.rounds = {round(0, 0, {100, 110, 140}), round(1, 200, {210, 230}), round(2, 300, {330, 350})};
  const LoopSummary summary = summarise(run);
  EXPECT_EQ(summary.rounds, 3U);
  EXPECT_EQ(summary.short_answers, 1U);
  EXPECT_DOUBLE_EQ(summary.rounds_per_s, 1.5);
  EXPECT_DOUBLE_EQ(summary.tokens_per_s, 7.5);
  EXPECT_DOUBLE_EQ(summary.ttft_ms.median, 30);
  EXPECT_DOUBLE_EQ(summary.ttft_ms.most, 100);
  EXPECT_DOUBLE_EQ(summary.first_round_ttft_ms.median, 100);
  EXPECT_DOUBLE_EQ(summary.later_rounds_ttft_ms.median, 20);
  EXPECT_DOUBLE_EQ(summary.token_ms.median, 5);  // of 40, 20 and 20 ms for four tokens
  EXPECT_DOUBLE_EQ(summary.gap_ms.most, 30);
  EXPECT_EQ(summary.prompt_tokens, 300);
  EXPECT_EQ(summary.cached_tokens, 150);
}

TEST(LoopBenchTest, P99IsTheValueThat99PercentAreNotAbove) {
  std::vector<double> values;
  for (int i = 1; i <= 200; ++i) values.push_back(i);
  EXPECT_DOUBLE_EQ(quantiles_of(values).p99, 198);
  EXPECT_DOUBLE_EQ(quantiles_of(values).median, 100.5);
  EXPECT_DOUBLE_EQ(quantiles_of({3}).p99, 3);
  EXPECT_DOUBLE_EQ(quantiles_of({}).most, 0);
}

agent::Stamped stamped(agent::Event event, int at_ms) {
  return {.session = "", .seq = 0, .at = {}, .event = std::move(event), .made = std::chrono::steady_clock::time_point(milliseconds(at_ms))};
}

agent::GenerationStarted asking(int attempt, std::optional<int> parent, const std::string& text) {
  agent::GenerationStarted event{.attempt = attempt, .number = 0, .draft = 0, .ask = {}};
  event.ask.parent = parent;
  event.ask.user_text = text;
  event.ask.purpose = parent ? agent::Purpose::repair : agent::Purpose::draft;
  return event;
}

agent::Generated writing(int attempt, const std::string& text, std::int64_t tokens) {
  return {.attempt = attempt, .text = text, .finish = agent::Finish::stop, .usage = {.completion_tokens = tokens}, .cost = {}};
}

TEST(LoopRecorderTest, ARepairGoesOnWithTheConversationOfItsParentAndADraftBeginsOne) {
  LoopRecorder recorder;
  recorder.take("t#0", stamped(asking(0, std::nullopt, "task"), 0));
  recorder.take("t#0", stamped(writing(0, "first", 11), 50));
  recorder.take("t#0", stamped(asking(1, 0, "wrong"), 90));
  recorder.take("t#0", stamped(writing(1, "second", 12), 120));
  recorder.take("t#0", stamped(asking(2, std::nullopt, "task"), 200));
  recorder.take("t#0", stamped(writing(2, "other", 13), 230));
  recorder.take("t#0", stamped(asking(3, 0, "a second repair of the first"), 300));
  recorder.take("t#0", stamped(writing(3, "left out", 14), 330));
  recorder.take("t#0", stamped(asking(4, 2, "never answered"), 400));
  const LoopWorkload workload = recorder.workload();
  const LoopWorkload expected{.shared = "",
                              .sessions = {{"t#0", {{"task", "first", 11, milliseconds(40)}, {"wrong", "second", 12, milliseconds(0)}}},
                                           {"t#0/2", {{"task", "other", 13, milliseconds(0)}}}}};
  EXPECT_EQ(workload, expected);
}

TEST(LoopRecorderTest, AnAttemptIsWhatTheNextPromptHoldsOfIt) {
  const std::string text(20'000, 'x');
  LoopRecorder recorder;
  recorder.take("t#0", stamped(asking(0, std::nullopt, "task"), 0));
  recorder.take("t#0", stamped(writing(0, text, 11), 50));
  agent::Progress progress;
  progress.attempts.push_back({.ask = {.user_text = "task"}, .text = text});
  const auto messages = agent::messages_for(progress, {.parent = 0, .user_text = "wrong"});
  ASSERT_EQ(messages.size(), 3U);
  EXPECT_LT(messages[1].content.size(), text.size());
  EXPECT_EQ(recorder.workload().sessions.at(0).rounds.at(0).attempt, messages[1].content);
}

}  // namespace
}  // namespace fixpoint::evals
