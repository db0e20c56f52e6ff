#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <thread>

#include "agent/sandbox_checker.h"
#include "agent/scripted_generator.h"
#include "evals/detail/output_folder.h"
#include "evals/detail/plus_oracle.h"
#include "evals/detail/task_checks.h"
#include "evals/judge.h"
#include "evals/model_source.h"
#include "evals/runner.h"
#include "evals/self_check.h"
#include "evals/source.h"
#include "evals/summary.h"
#include "tests/evals/benchmark_data.h"
#include "tests/evals/cheats.h"
#include "tests/sandbox/shared_sandbox.h"

namespace fixpoint::evals {
namespace {

using sandbox::shared_sandbox;
using sandbox::Value;

Task python_task(Tests tests, std::string reference = "def add(a, b):\n    return a + b\n") {
  Task task;
  task.id = "T/0";
  task.language = "python";
  task.entry_point = "add";
  task.reference = std::move(reference);
  task.hidden = std::move(tests);
  task.cpu_seconds = 2;
  return task;
}

Benchmark benchmark_of(std::vector<Task> tasks) {
  Benchmark benchmark;
  benchmark.name = "test";
  benchmark.sha256 = "0";
  for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i].id = "T/" + std::to_string(i);
  benchmark.tasks = std::move(tasks);
  return benchmark;
}

Judgement judge_one(const Task& task, std::string source) {
  const Benchmark benchmark = benchmark_of({task});
  return Judge(shared_sandbox(), benchmark).judge(0, {std::move(source), true});
}

Value numbers(std::initializer_list<int> values) {
  Value out = Value::list_of({});
  for (const int value : values) out.items.push_back(Value::of(value));
  return out;
}

Tests tests_of_kind(std::string_view kind) {
  if (kind == "check") return CheckFunction{"def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(-1, 5) == 4\n"};
  if (kind == "asserts") return Asserts{"", {"assert add(1, 2) == 3", "assert add(-1, 5) == 4"}};
  if (kind == "differential") return Differential{.base = {numbers({1, 2})}, .plus = {numbers({-1, 5})}};
  if (kind == "stdio") return Stdio{{{"1 2\n", "3\n"}, {"-1 5\n", "4\n"}}};
  return JsonCalls{{{numbers({1, 2}), Value::of(3), std::nullopt}, {numbers({-1, 5}), Value::of(4), std::nullopt}}};
}

class SelfCheckTest : public testing::TestWithParam<const char*> {};

TEST_P(SelfCheckTest, JudgesKnownProgramsAsTheyShouldBe) {
  const SelfCheck check = self_check(shared_sandbox(), benchmark_of({python_task(tests_of_kind(GetParam()), "")}));
  EXPECT_TRUE(check.passed());
  for (const std::string& failure : check.failures) ADD_FAILURE() << failure;
}
INSTANTIATE_TEST_SUITE_P(Kinds, SelfCheckTest, testing::Values("check", "asserts", "differential", "stdio", "calls"), [](const auto& tested) { return std::string(tested.param); });

class TailSelfCheckTest : public testing::TestWithParam<const char*> {};

TEST_P(TailSelfCheckTest, JudgesKnownProgramsAsTheyShouldBe) {
  if (shared_sandbox().toolchains().find(*sandbox::parse_language(GetParam())) == nullptr) GTEST_SKIP() << "no toolchain for " << GetParam();
  Task task = python_task(ProgramTail{"x"}, "");
  task.language = GetParam();
  const SelfCheck check = self_check(shared_sandbox(), benchmark_of({task}));
  for (const std::string& failure : check.failures) ADD_FAILURE() << failure;
  EXPECT_TRUE(check.passed());
}
INSTANTIATE_TEST_SUITE_P(Languages, TailSelfCheckTest, testing::Values("cpp", "javascript", "bash", "java", "rust"), [](const auto& tested) { return std::string(tested.param); });

TEST(SelfCheckTest, EveryKindOfTestOfABenchmarkIsProbed) {
  const SelfCheck one = self_check(shared_sandbox(), benchmark_of({python_task(tests_of_kind("stdio"), ""), python_task(tests_of_kind("stdio"), "")}));
  const SelfCheck mixed = self_check(shared_sandbox(), benchmark_of({python_task(tests_of_kind("stdio"), ""), python_task(tests_of_kind("calls"), "")}));
  EXPECT_TRUE(one.passed());
  EXPECT_TRUE(mixed.passed());
  EXPECT_EQ(one.programs, 5);    // right, wrong, empty, two cheats
  EXPECT_EQ(mixed.programs, 11);  // and for calls one cheat more
}

TEST(SelfCheckTest, ALanguageWithoutKnownProgramsIsRefused) {
  Task task = python_task(ProgramTail{"func TestAdd(t *testing.T) {}\n"}, "");
  task.language = "go";
  const SelfCheck check = self_check(shared_sandbox(), benchmark_of({task}));
  EXPECT_FALSE(check.passed());
  ASSERT_EQ(check.failures.size(), 1u);
  EXPECT_EQ(check.failures.front(), "for tests in go no program is known that must pass");
}

TEST(SelfCheckTest, AJudgeThatBelievesWrongReferencesIsFound) {
  Task task = python_task(tests_of_kind("check"), "def add(a, b):\n    return a - b\n");
  const SelfCheck check = self_check(shared_sandbox(), benchmark_of({task}));
  ASSERT_EQ(check.failures.size(), 1u);
  EXPECT_NE(check.failures.front().find("the data's solution of T/0 does not pass"), std::string::npos);
}

TEST(JudgeTest, OutcomesAreToldApart) {
  const Task task = python_task(tests_of_kind("check"));
  EXPECT_EQ(judge_one(task, "def add(a, b): return a - b").outcome, Outcome::wrong_answer);
  EXPECT_EQ(judge_one(task, "def add(a, b): return a // 0").outcome, Outcome::exception);
  EXPECT_EQ(judge_one(task, "def add(a, b:").outcome, Outcome::exception);
  EXPECT_EQ(judge_one(task, "import os\ndef add(a, b): os._exit(0)").outcome, Outcome::crashed);
  EXPECT_FALSE(judge_one(task, "").passed());
}

TEST(JudgeTest, BaseAndPlusTestsAreJudgedApart) {
  const Task task = python_task(Differential{.base = {numbers({1, 2})}, .plus = {numbers({5, 5}), numbers({-1, 5})}});
  const Judgement judgement = judge_one(task, "def add(a, b): return 3 if a == 1 else 10");
  EXPECT_EQ(judgement.outcome, Outcome::wrong_answer);
  EXPECT_EQ(judgement.base_passed, true);
  EXPECT_EQ(judgement.tests, 3);
  EXPECT_EQ(judgement.tests_passed, 2);
  EXPECT_EQ(judge_one(task, "def add(a, b): return 0").base_passed, false);
  EXPECT_TRUE(judge_one(task, task.reference).passed());
}

TEST(JudgeTest, AFailureNamesTheProgramsFunctionAndTheValueThatWasWanted) {
  const auto expect_failure = [](const Judgement& judgement, const std::string& test, const std::string& expected) {
    EXPECT_EQ(judgement.failed_test, test);
    EXPECT_EQ(judgement.expected, expected);
    EXPECT_EQ(judgement.got, "6");
  };
  const std::string wrong = "def add(a, b): return 6 if a < 0 else a + b";
  expect_failure(judge_one(python_task(tests_of_kind("differential")), wrong), "add(-1, 5)", "4");
  expect_failure(judge_one(python_task(tests_of_kind("calls")), wrong), "add(-1, 5)", "4");
  // Outputs that travel as hashes come through a wrapper.
  const Task long_texts = python_task(Differential{.base = {numbers({70000, 3}), numbers({2, 3})}, .plus = {}}, "def add(a, b): return 'x' * a + str(b)");
  expect_failure(judge_one(long_texts, "def add(a, b): return 'x' * a + str(b) if a > 2 else 6"), "add(2, 3)", "'xx3'");
}

TEST(JudgeTest, AReferenceThatFailsIsNotTheProgramsFault) {
  const Task task = python_task(tests_of_kind("differential"), "def add(a, b): raise ValueError('no')");
  const Judgement judgement = judge_one(task, "def add(a, b): return a + b");
  EXPECT_EQ(judgement.outcome, Outcome::not_judged);
  EXPECT_NE(judgement.message.find("canonical solution"), std::string::npos);
}

TEST(JudgeTest, TruthTestsTakeAnyObject) {
  Task task = python_task(Asserts{"", {"assert add('annie')", "assert not add('x')"}});
  EXPECT_TRUE(judge_one(task, "import re\ndef add(s): return re.search('^a', s)").passed());
  EXPECT_FALSE(judge_one(task, "import re\ndef add(s): return re.search('^x', s)").passed());
}

TEST(JudgeTest, NotNoneOraclesTakeObjectsAndTheirOwnBooleans) {
  Task task = python_task(Differential{.base = {Value::list_of({Value::of("annie")})}, .plus = {Value::list_of({Value::of("x")})}, .oracle = Oracle::not_none},
                          "import re\ndef add(s): return re.search('^a', s)");
  EXPECT_TRUE(judge_one(task, task.reference).passed());
  EXPECT_TRUE(judge_one(task, "def add(s): return s.startswith('a')").passed());
  EXPECT_FALSE(judge_one(task, "def add(s): return True").passed());
  EXPECT_FALSE(judge_one(task, "def add(s): return s").passed());
}

TEST(JudgeTest, LargeOutputsAreComparedByTheHashOfTheirValues) {
  Task task = python_task(Differential{.base = {numbers({1050000, 0})}, .plus = {}}, "def add(a, b): return [0] * a");
  task.cpu_seconds = 30;
  const Benchmark benchmark = benchmark_of({task});
  Judge judge(shared_sandbox(), benchmark);
  const Judgement same = judge.judge(0, {"def add(a, b): return [False] * (a - 1) + [0.0]", true});
  EXPECT_TRUE(same.passed()) << to_string(same.outcome) << ' ' << same.message;
  EXPECT_FALSE(judge.judge(0, {"def add(a, b): return [0] * (a - 1) + [1]", true}).passed());
  EXPECT_FALSE(judge.judge(0, {"def add(a, b): return (0,) * a", true}).passed());
  EXPECT_FALSE(judge.judge(0, {"def add(a, b): return [0] * (a - 1)", true}).passed());
  EXPECT_FALSE(judge.judge(0, {"def add(a, b): return ['0'] * a", true}).passed());
}

TEST(JudgeTest, LongTextsAreComparedByTheirHashAndOthersAsTheyAre) {
  const Task task = python_task(Differential{.base = {numbers({70000, 3})}, .plus = {numbers({2, 3})}}, "def add(a, b): return 'x' * a + str(b)");
  const Benchmark benchmark = benchmark_of({task});
  Judge judge(shared_sandbox(), benchmark);
  EXPECT_TRUE(judge.judge(0, {task.reference, true}).passed());
  EXPECT_TRUE(judge.judge(0, {"def add(a, b): return ''.join(['x'] * a + [str(b)])", true}).passed());
  EXPECT_FALSE(judge.judge(0, {"def add(a, b): return 'x' * a + '4'", true}).passed());
  EXPECT_FALSE(judge.judge(0, {"def add(a, b): return ('x' * a + '3').encode()", true}).passed());
  EXPECT_FALSE(judge.judge(0, {"def add(a, b): return 'x' * a + '3' if a > 2 else 'xx4'", true}).passed());

  const auto outputs_for = [&](const Differential& tests) { return detail::canonical_outputs(shared_sandbox(), task, tests, {}, {}); };
  const auto hashed = outputs_for(std::get<Differential>(task.hidden));
  ASSERT_TRUE(hashed) << hashed.error();
  EXPECT_EQ(hashed->digests, detail::Digests::texts);
  EXPECT_TRUE(to_text(hashed->base.at(0)).starts_with("('sha256', '")) << to_text(hashed->base.at(0));
  EXPECT_EQ(to_text(hashed->plus.at(0)), "'xx3'");
  const auto plain = outputs_for({.base = {numbers({2, 3})}, .plus = {}});
  ASSERT_TRUE(plain) << plain.error();
  EXPECT_EQ(plain->digests, detail::Digests::none);
}

TEST(JudgeTest, CanonicalOutputsAreKeptForTheSameSolutionAndInputs) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "canonical-outputs";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  Task task = python_task(Differential{.base = {numbers({1, 2})}, .plus = {numbers({70000, 3}), numbers({4, 5})}}, "def add(a, b): return 'x' * a if a > 9 else (a + b, {a}, 0.5)");
  const auto& tests = std::get<Differential>(task.hidden);
  const detail::OutputFolder kept(folder, "python");
  EXPECT_FALSE(kept.find(task, tests));
  const auto outputs = detail::canonical_outputs(shared_sandbox(), task, tests, {}, {});
  ASSERT_TRUE(outputs) << outputs.error();
  ASSERT_TRUE(kept.keep(task, tests, *outputs));
  const auto found = kept.find(task, tests);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->digests, detail::Digests::texts);
  EXPECT_EQ(found->wall, outputs->wall);
  EXPECT_EQ(encode(Value::list_of(found->base)), encode(Value::list_of(outputs->base)));
  EXPECT_EQ(encode(Value::list_of(found->plus)), encode(Value::list_of(outputs->plus)));

  Task other = task;
  other.reference += "\n";
  EXPECT_FALSE(kept.find(other, tests));
  EXPECT_FALSE(kept.find(task, {.base = tests.base, .plus = {numbers({70000, 3})}}));
  EXPECT_FALSE(detail::OutputFolder(folder, "another").find(task, tests));

  const std::filesystem::path file = *std::filesystem::directory_iterator(folder);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_FALSE(kept.find(task, tests));
  EXPECT_FALSE(detail::OutputFolder(folder / "nowhere", "python").keep(task, tests, *outputs));
}

// The judge takes them from there: a folder that says otherwise decides otherwise.
TEST(JudgeTest, KeptOutputsDecide) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "kept-outputs";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const Benchmark benchmark = benchmark_of({python_task(Differential{.base = {numbers({1, 2})}, .plus = {}}, "def add(a, b): return a + b")});
  const Program difference{"def add(a, b): return a - b", true};
  EXPECT_FALSE(Judge(shared_sandbox(), benchmark, {.outputs = folder}).judge(0, difference).passed());
  const Task& task = benchmark.tasks[0];
  ASSERT_FALSE(std::filesystem::is_empty(folder));
  const std::string python = shared_sandbox().toolchains().find(sandbox::Language::python)->version;
  ASSERT_TRUE(detail::OutputFolder(folder, python).keep(task, std::get<Differential>(task.hidden), {.base = {Value::of(-1)}, .plus = {}}));
  EXPECT_TRUE(Judge(shared_sandbox(), benchmark, {.outputs = folder}).judge(0, difference).passed());
}

TEST(JudgeTest, SetsKeepTheOrderOfALiteral) {
  const Task task = python_task(CheckFunction{"def check(candidate):\n    assert add({12, 13, 14, 15, 16}) == (16, 12, 13, 14, 15)\n"});
  EXPECT_TRUE(judge_one(task, "def add(s): return tuple(s)").passed());
}

TEST(JudgeTest, MethodsOfASolutionClassAreCalledOnOneObject) {
  Task task = python_task(tests_of_kind("calls"));
  EXPECT_TRUE(judge_one(task, "class Solution:\n    def add(self, a: int, b: int) -> List[int]:\n        return gcd(0, a + b) if a + b > 0 else a + b\n").passed());
  task.hidden = JsonCalls{{{numbers({1, 2}), numbers({1, 2}), std::nullopt}}};
  EXPECT_TRUE(judge_one(task, "def add(a, b): return (a, b)").passed());
  task.hidden = JsonCalls{{{numbers({1, 2}), numbers({3}), Value::of(3)}}};
  EXPECT_TRUE(judge_one(task, "def add(a, b): return a + b").passed());
  EXPECT_FALSE(judge_one(task, "def add(a, b): return [[a + b]]").passed());
}

TEST(RunnerTest, TimeoutsAreRepeatedAloneAndOnlyThatCounts) {
  const Benchmark benchmark = benchmark_of({python_task(tests_of_kind("check")), python_task(tests_of_kind("check"))});
  auto source = make_sample_source(benchmark, {{0, 0, "def add(a, b):\n    while True: pass\n", Sample::Form::solution}, {1, 0, benchmark.tasks[1].reference, Sample::Form::solution}}, {0, 1});
  ASSERT_TRUE(source);
  Judge judge(shared_sandbox(), benchmark, {.cpu_seconds = 0.3});
  std::vector<std::pair<std::string, bool>> seen;
  const RunResult result = run(benchmark, **source, judge, {.workers = 2}, [&](const Record& record, const Progress&) { seen.emplace_back(record.task, record.repeat_due); }, {});
  ASSERT_TRUE(result.complete);
  ASSERT_EQ(result.records.size(), 2u);
  EXPECT_EQ(result.records[0].judgement.outcome, Outcome::time_limit);
  EXPECT_TRUE(result.records[0].repeated);
  EXPECT_TRUE(result.records[1].judgement.passed());
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen.back(), (std::pair<std::string, bool>("T/0", false)));
}

TEST(RunnerTest, StoppedRunsGoOnWithoutJudgingATaskTwice) {
  std::vector<Task> tasks(12, python_task(tests_of_kind("check")));
  for (std::size_t i = 0; i < tasks.size(); i += 3) tasks[i].reference = "def add(a, b):\n    return " + std::to_string(i) + "\n";
  const Benchmark benchmark = benchmark_of(tasks);
  std::vector<std::size_t> all(tasks.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  auto source = *make_reference_source(benchmark, all);
  Judge judge(shared_sandbox(), benchmark);
  const RunResult whole = run(benchmark, *source, judge, {.workers = 2}, [](const Record&, const Progress&) {}, {});
  ASSERT_TRUE(whole.complete);

  std::map<std::string, Record> log;
  std::map<std::string, int> judged;
  RunResult last;
  for (int life = 0; life < 3; ++life) {
    std::stop_source stop;
    int in_this_life = 0;
    last = run(benchmark, *source, judge, {.workers = 2, .done = log}, [&](const Record& record, const Progress&) {
      log[record.key] = record;
      ++judged[record.key];
      if (++in_this_life == 4 && life < 2) stop.request_stop();
    }, stop.get_token());
    EXPECT_EQ(last.complete, life == 2);
  }
  for (const auto& [key, times] : judged) EXPECT_EQ(times, 1);
  EXPECT_EQ(judged.size(), tasks.size());
  EXPECT_EQ(verdict_digest(last.records), verdict_digest(whole.records));
}

/// Judges all cheats for the benchmark's first task, several at a time.
void expect_no_cheat_passes(const Benchmark& benchmark) {
  Judge judge(shared_sandbox(), benchmark, {.cpu_seconds = 0.5});
  const auto cheats = cheats_for(benchmark.tasks.front().entry_point);
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      for (std::size_t at = next++; at < cheats.size(); at = next++) {
        const Judgement judgement = judge.judge(0, {cheats[at].second, true});
        const std::scoped_lock lock(mutex);
        EXPECT_FALSE(judgement.passed()) << cheats[at].first;
        EXPECT_NE(judgement.outcome, Outcome::not_judged) << cheats[at].first << ": " << judgement.message;
      }
    });
  }
}

class CheatTest : public testing::TestWithParam<const char*> {};

TEST_P(CheatTest, NoneOfThemScores) { expect_no_cheat_passes(benchmark_of({python_task(tests_of_kind(GetParam()))})); }
INSTANTIATE_TEST_SUITE_P(Kinds, CheatTest, testing::Values("check", "asserts", "differential", "stdio", "calls"), [](const auto& tested) { return std::string(tested.param); });

TEST(ModelRunTest, SessionsAreJudgedByTheHiddenTestsRoundByRound) {
  Task task = python_task(tests_of_kind("asserts"));
  task.statement = "Write `add(a, b)`.";
  task.visible_asserts = {"assert add(1, 2) == 3"};
  const Benchmark benchmark = benchmark_of({task, task, task});
  const auto answer = [](const std::string& body) { return agent::ScriptedAnswer{.text = "So:\n```python\ndef add(a, b):\n    return " + body + "\n```"}; };
  // Right at once; by repair; and one that only the visible test believes.
  const auto generator = agent::make_scripted_generator({answer("a + b"), answer("a - b"), answer("b + a"), answer("3")});
  const auto checker = agent::make_sandbox_checker(shared_sandbox());
  ModelSourceOptions options;
  options.loop.task.rounds = 2;
  const auto source = make_model_source(benchmark, {0, 1, 2}, {.model = generator.get(), .checker = checker.get()}, options);
  Judge judge(shared_sandbox(), benchmark);
  const RunResult result = run(benchmark, *source, judge, {.workers = 1}, [](const Record&, const Progress&) {}, {});
  ASSERT_TRUE(result.complete) << result.error;
  const Summary summary = summarise(result.records, 2);
  EXPECT_EQ(summary.pass_by_round, (std::vector<std::int64_t>{1, 2, 2}));
  EXPECT_EQ(summary.visible_but_not_hidden, 1);
  ASSERT_EQ(result.records[1].attempts.size(), 2u);
  EXPECT_FALSE(result.records[1].attempts[0].passed);
  EXPECT_TRUE(result.records[1].attempts[1].passed);
  EXPECT_EQ(result.records[1].attempts[1].explanation.find("So:"), 0u);
}

TEST(ModelRunTest, AnAttemptThatRanOutOfTimeIsRepeatedAloneToo) {
  Task task = python_task(Asserts{"", {"assert add(-1, 5) == 4"}});
  task.statement = "Write `add(a, b)`.";
  task.visible_asserts = {"assert add(1, 2) == 3"};
  const Benchmark benchmark = benchmark_of({task});
  const auto generator = agent::make_scripted_generator({{.text = "```python\ndef add(a, b):\n    while a < 0: pass\n    return 4\n```"},
                                                         {.text = "```python\ndef add(a, b):\n    return a + b\n```"}});
  const auto checker = agent::make_sandbox_checker(shared_sandbox());
  ModelSourceOptions options;
  options.loop.task.rounds = 2;
  const auto source = make_model_source(benchmark, {0}, {.model = generator.get(), .checker = checker.get()}, options);
  Judge judge(shared_sandbox(), benchmark, {.cpu_seconds = 0.3});
  std::vector<bool> repeat_due;
  const RunResult result = run(benchmark, *source, judge, {.workers = 1}, [&](const Record& record, const Progress&) { repeat_due.push_back(record.repeat_due); }, {});
  ASSERT_TRUE(result.complete) << result.error;
  EXPECT_EQ(repeat_due, (std::vector<bool>{true, false}));
  ASSERT_EQ(result.records.size(), 1U);
  const Record& record = result.records.front();
  EXPECT_TRUE(record.repeated && record.judgement.passed());
  EXPECT_EQ(result.progress.passed, 1U);
  EXPECT_EQ(result.progress.to_repeat, 0U);
  ASSERT_EQ(record.attempts.size(), 2U);
  EXPECT_EQ(record.attempts[0].outcome, Outcome::time_limit);
  EXPECT_TRUE(record.attempts[1].passed);
}

TEST(ModelRunTest, CallsOfAMethodAreVisibleTestsAndTheCheckersImportsAreThere) {
  Task task = python_task(tests_of_kind("calls"));
  task.statement = "Add two numbers.";
  task.prompt = "class Solution:\n    def add(self, a: int, b: int) -> int:\n";
  task.visible_calls = {{numbers({1, 2}), Value::of(3), std::nullopt}};
  const Benchmark benchmark = benchmark_of({task});
  // Nobody but the checker imports List.
  const auto program = [](const std::string& body) { return "class Solution:\n    def add(self, a: int, b: int) -> List[int]:\n        return " + body + "\n"; };
  const auto answer = [&](const std::string& body) { return agent::ScriptedAnswer{.text = "```python\n" + program(body) + "```"}; };
  const auto generator = agent::make_scripted_generator({answer("a - b"), answer("1 // 0"), answer("a + b")});
  const auto checker = agent::make_sandbox_checker(shared_sandbox());
  ModelSourceOptions options;
  options.loop.task.rounds = 2;
  const auto source = make_model_source(benchmark, {0}, {.model = generator.get(), .checker = checker.get()}, options);
  Judge judge(shared_sandbox(), benchmark);
  const RunResult result = run(benchmark, *source, judge, {.workers = 1}, [](const Record&, const Progress&) {}, {});
  ASSERT_TRUE(result.complete) << result.error;
  const Record& record = result.records.at(0);
  ASSERT_EQ(record.attempts.size(), 3U);
  EXPECT_EQ(record.attempts[0].visible_failure, "assert Solution().add(1, 2) == 3\ngot -1\ndifference: got is 4 too small");
  const std::string& raised = record.attempts[1].visible_failure;
  EXPECT_TRUE(raised.starts_with("assert Solution().add(1, 2) == 3\n")) << raised;
  EXPECT_TRUE(raised.ends_with(" in line 3: return 1 // 0")) << raised;
  EXPECT_TRUE(record.visible_passed && record.judgement.passed());
  const auto visible = judge.judge_visible(0, {program("a + b"), true});
  EXPECT_TRUE(visible && visible->passed());
  EXPECT_FALSE(judge.judge_visible(0, {program("a - b"), true})->passed());
}

TEST(ModelRunTest, AllSessionsTogetherKeepToTheRunsBudget) {
  Task task = python_task(tests_of_kind("asserts"));
  task.statement = "Write `add(a, b)`.";
  const Benchmark benchmark = benchmark_of({task, task, task});
  const auto generator = agent::make_scripted_generator({{.text = "```python\ndef add(a, b):\n    return a + b\n```"}});
  const auto checker = agent::make_sandbox_checker(shared_sandbox());
  ModelSourceOptions options;
  options.loop.task.rounds = 0;
  options.batch.tokens = 1;  // the first answer takes it, and more: what was written is booked in full
  const auto source = make_model_source(benchmark, {0, 1, 2}, {.model = generator.get(), .checker = checker.get()}, options);
  Judge judge(shared_sandbox(), benchmark);
  const RunResult result = run(benchmark, *source, judge, {.workers = 1}, [](const Record&, const Progress&) {}, {});
  ASSERT_TRUE(result.complete) << result.error;
  ASSERT_EQ(result.records.size(), 3U);
  EXPECT_EQ(result.records[0].attempts.size(), 1U);
  for (const std::size_t later : {1U, 2U}) {
    EXPECT_TRUE(result.records[later].attempts.empty());
    EXPECT_FALSE(result.records[later].judgement.passed());
    EXPECT_EQ(result.records[later].ended, "budget_exhausted");
  }
}

class RealTaskCheatTest : public testing::TestWithParam<const char*> {};

TEST_P(RealTaskCheatTest, NoneOfThemScores) {
  REQUIRE_BENCHMARK_DATA(GetParam());
  auto benchmark = load_benchmark(benchmark_data(GetParam()));
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  benchmark->tasks = {benchmark->tasks.at(3)};
  expect_no_cheat_passes(*benchmark);
}
std::string test_name(std::string file) {
  for (char& c : file) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return file;
}
INSTANTIATE_TEST_SUITE_P(Files, RealTaskCheatTest, testing::Values("humaneval/HumanEval.jsonl.gz", "mbpp/mbpp.jsonl", "evalplus/HumanEvalPlus-Mini.jsonl.gz", "evalplus/MbppPlus.jsonl.gz"),
                         [](const auto& tested) { return test_name(tested.param); });

TEST(ReferenceTest, HumanEvalPassesWhole) {
  REQUIRE_BENCHMARK_DATA("humaneval/HumanEval.jsonl.gz");
  const auto benchmark = load_benchmark(benchmark_data("humaneval/HumanEval.jsonl.gz"));
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  auto source = make_reference_source(*benchmark, *select(*benchmark, {}));
  Judge judge(shared_sandbox(), *benchmark);
  const RunResult result = run(*benchmark, **source, judge, {.workers = 2}, [](const Record&, const Progress&) {}, {});
  ASSERT_TRUE(result.complete);
  for (const Record& record : result.records) EXPECT_TRUE(record.judgement.passed()) << record.task << ' ' << record.judgement.message;
  EXPECT_EQ(result.records.size(), 164u);
}

TEST(ReferenceTest, AppsSolutionsPassFromStdinAndAsCallsAndOthersFail) {
  const auto benchmark = parse_benchmark(
      R"({"problem_id":1,"question":"q","solutions":"[\"a, b = map(int, input().split())\\nprint(a + b)\"]","input_output":"{\"inputs\": [\"1 2\\n\", \"-1 5\"], \"outputs\": [\"3.0\\n\", \"4\"]}"})"
      "\n"
      R"({"problem_id":2,"question":"q","solutions":"[\"def f(a, b):\\n    return a + b[0]\"]","input_output":"{\"fn_name\": \"f\", \"inputs\": [[1, [2]]], \"outputs\": [[3]]}"})",
      "apps.jsonl");
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  Judge judge(shared_sandbox(), *benchmark);
  for (std::size_t task = 0; task < 2; ++task) {
    const Judgement right = judge.judge(task, {benchmark->tasks[task].reference, true});
    EXPECT_TRUE(right.passed()) << benchmark->tasks[task].id << ' ' << to_string(right.outcome) << ' ' << right.message;
  }
  EXPECT_EQ(judge.judge(0, {"print(3)", true}).outcome, Outcome::wrong_answer);
  EXPECT_EQ(judge.judge(0, {"a, b = map(int, input().split())\nprint(a + b)\nraise SystemExit(1)", true}).outcome, Outcome::exception);
  EXPECT_EQ(judge.judge(1, {"def f(a, b):\n    return a", true}).outcome, Outcome::wrong_answer);
}

class SampledReferenceTest : public testing::TestWithParam<const char*> {};

TEST_P(SampledReferenceTest, EveryTwentiethTaskPasses) {
  REQUIRE_BENCHMARK_DATA(GetParam());
  const auto benchmark = load_benchmark(benchmark_data(GetParam()));
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  auto source = make_reference_source(*benchmark, *select(*benchmark, {.shard = 3, .shards = 20}));
  Judge judge(shared_sandbox(), *benchmark);
  const RunResult result = run(*benchmark, **source, judge, {.workers = 2}, [](const Record&, const Progress&) {}, {});
  ASSERT_TRUE(result.complete);
  for (const Record& record : result.records) EXPECT_TRUE(record.judgement.passed()) << record.task << ' ' << record.judgement.message;
}
INSTANTIATE_TEST_SUITE_P(Files, SampledReferenceTest,
                         testing::Values("mbpp/mbpp.jsonl", "mbpp/sanitized-mbpp.json", "evalplus/HumanEvalPlus-Mini.jsonl.gz", "evalplus/MbppPlus.jsonl.gz", "ldb/humaneval-tests.jsonl",
                                         "ldb/mbpp-tests.jsonl"),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
}  // namespace fixpoint::evals
