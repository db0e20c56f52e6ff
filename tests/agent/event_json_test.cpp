#include <gtest/gtest.h>

#include "agent/event.h"

namespace fixpoint::agent {
namespace {

/// One of each kind, with values that differ from the defaults.
std::vector<Event> samples() {
  const Amounts amounts{.rounds = 1, .tokens = 2, .wall = std::chrono::milliseconds(3), .sandbox = std::chrono::milliseconds(4)};
  SessionStarted started;
  started.task = {.id = "t/1", .statement = "Do \"it\".\n", .language = "cpp", .entry_point = "f", .setup = "import math"};
  started.task.context = {{"a/b.py", "x = 1\n"}};
  started.task.visible = {{Assertion{"assert f(1) == 2"}, TestOrigin::doctest}, {StdioCase{"1\n", "2\n"}}};
  started.task.hidden = {{CheckFunction{"def check(candidate): pass"}}, {TestFile{"t.py", "class Test: pass"}}, {Assertion{"assert f(2)"}, TestOrigin::model}};
  started.task.shown_tests = 1;
  started.options.feedback = {.unit_test = false, .explanation = true, .trace = false};
  started.options.ladder = {{.kind = RungKind::explainer, .attempts = 3, .grant = amounts}};
  started.options.seed = 0xFFFFFFFFFFFFFFFFULL;
  started.prompt_version = "p";
  started.in_batch = true;
  started.model = "m";
  GenerationStarted generation{.attempt = 3, .number = 2, .draft = 1};
  generation.ask = {.purpose = Purpose::repair, .writer = Writer::specialist, .parent = 2, .user_text = "u", .whole_history = false};
  generation.ask.temperature = 0.8;
  generation.ask.seed = 0x7FFFFFFFFFFFFFFFULL;
  Judgement judgement{.status = CheckStatus::runtime_error, .passed = 1, .total = 3, .message = "m", .output = "o"};
  judgement.failures = {{.index = 1, .test = "t", .input = "i", .expected = "e", .actual = "a", .difference = "d", .error = "r"}};
  judgement.trace = {{.line = 4, .source = "s", .effect = "x = 1"}};
  judgement.trace_left_out = 9;
  judgement.trace_head = 1;
  std::vector<Event> events;
  events.emplace_back(started);
  events.emplace_back(RoundStarted{.number = 1, .drafts = 2, .purpose = Purpose::review, .writer = Writer::specialist, .parent = 1, .heated = true, .cost = amounts, .left = amounts});
  events.emplace_back(generation);
  events.emplace_back(TextDelta{1, "d\xC3\xA9"});
  events.emplace_back(Generated{.attempt = 1, .text = "t", .finish = Finish::length, .usage = {1, 2, 3}, .cost = amounts});
  events.emplace_back(GenerationFailed{.attempt = 1, .kind = GenerateError::Kind::too_long, .detail = "d", .usage = {1, 2, 3}, .cost = amounts});
  events.emplace_back(Explained{1, "e"});
  events.emplace_back(ProgramWritten{1, "p", ExtractKind::unclosed_fence});
  events.emplace_back(TestsWritten{1, {{Assertion{"assert 1"}, TestOrigin::model}}});
  events.emplace_back(CheckStarted{1});
  events.emplace_back(Checked{1, judgement, amounts});
  events.emplace_back(CheckFailed{1, CheckError::Kind::unsupported, "d", amounts});
  events.emplace_back(Stuck{StuckReason::oscillation, 2});
  events.emplace_back(Climbed{1, RungKind::person, amounts, amounts});
  events.emplace_back(Scored{1, judgement});
  events.emplace_back(Ended{.outcome = Outcome::handed_over, .basis = Basis::review, .best = 4, .detail = "d", .escalation = "e", .spent = amounts, .left = amounts, .usage = {1, 2, 3}});
  events.emplace_back(Resumed{});
  events.emplace_back(HintGiven{"b", "t", amounts});
  events.emplace_back(ProgramSubmitted{"b", "p", amounts});
  events.emplace_back(Declined{"b", "r"});
  return events;
}

TEST(EventJsonTest, EveryKindComesBackAsItWas) {
  const std::vector<Event> events = samples();
  EXPECT_EQ(events.size(), std::variant_size_v<Event>);
  for (const Event& event : events) {
    const std::string json = to_json(event);
    const auto parsed = parse_event(json);
    ASSERT_TRUE(parsed.has_value()) << json << ": " << parsed.error();
    EXPECT_EQ(kind_of(*parsed), kind_of(event));
    EXPECT_EQ(to_json(*parsed), json);
  }
}

TEST(EventJsonTest, AStampedEventIsOneLine) {
  Stamped stamped{"s", 7, std::chrono::sys_time<std::chrono::milliseconds>(std::chrono::milliseconds(1234)), TextDelta{0, "a\nb"}};
  const std::string line = to_json(stamped);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = parse_stamped(line);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->session, "s");
  EXPECT_EQ(parsed->seq, 7);
  EXPECT_EQ(parsed->at, stamped.at);
}

TEST(EventJsonTest, WrongTypesNameTheField) {
  EXPECT_EQ(parse_event(R"({"type":"checked","judgement":{"failures":[{"index":"x"}]}})").error(),
            "checked.judgement: failures: index: not an integer");
  EXPECT_EQ(parse_event(R"({"type":"stuck","reason":"bored"})").error(), "stuck.reason: unknown name");
  EXPECT_EQ(parse_event(R"({"type":"nonsense"})").error(), "type: unknown event 'nonsense'");
  EXPECT_EQ(parse_event("[1").error(), "not valid JSON: fault at byte 3");
}

TEST(EventJsonTest, MissingFieldsKeepTheirDefaults) {
  const auto parsed = parse_event(R"({"type":"ended"})");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(std::get<Ended>(*parsed).outcome, Outcome::failed);
}

TEST(EventJsonTest, ASessionWithoutATaskIsRefused) {
  const auto event = parse_event(R"({"type":"session_started","model":"m"})");
  ASSERT_FALSE(event.has_value());
  EXPECT_EQ(event.error(), "session_started.task: missing");
}

}  // namespace
}  // namespace fixpoint::agent
