#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/prompt.h"
#include "evals/benchmark.h"
#include "evals/catalog.h"
#include "evals/model_source.h"
#include "tests/evals/benchmark_data.h"

namespace fixpoint::evals {
namespace {

using sandbox::Value;

std::string error_of(std::string_view bytes) {
  const auto benchmark = parse_benchmark(bytes, "data.jsonl");
  return benchmark ? "" : benchmark.error().text();
}

constexpr std::string_view kHumanEvalRow =
    R"({"task_id":"HumanEval/0","prompt":"def f():\n","entry_point":"f","canonical_solution":"    return 1\n","test":"def check(candidate):\n    assert candidate() == 1\n"})";

TEST(DatasetTest, EveryPublishedFileLoadsWithItsHashAndCount) {
  REQUIRE_BENCHMARK_DATA("humaneval/HumanEval.jsonl.gz");
  for (const FileReport& report : check_files(benchmark_data(""))) {
    EXPECT_EQ(report.state, FileState::good) << report.known->path << ": " << report.message;
    EXPECT_EQ(report.tasks, report.known->tasks) << report.known->path;
  }
}

TEST(DatasetTest, AnAbsentFolderIsReportedFileByFile) {
  for (const FileReport& report : check_files("/nonexistent")) EXPECT_EQ(report.state, FileState::absent);
}

TEST(DatasetTest, FormatIsRecognisedByContentNotByName) {
  const auto benchmark = parse_benchmark(kHumanEvalRow, "anything.txt");
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  EXPECT_EQ(benchmark->name, "humaneval");
  EXPECT_EQ(benchmark->tasks.front().reference, "def f():\n    return 1\n");
}

TEST(DatasetTest, ErrorsNameFileLineAndField) {
  const std::string good(kHumanEvalRow);
  EXPECT_EQ(error_of(good + "\n\n{\"task_id\":\"HumanEval/1\"}"), "data.jsonl:3: field 'prompt': is missing");
  EXPECT_EQ(error_of(good + "\n" + good), "data.jsonl:2: task id 'HumanEval/0' is there twice");
  EXPECT_THAT(error_of(good + "\n{\"task_id\":"), testing::HasSubstr("data.jsonl:2: "));
  EXPECT_THAT(error_of(good + "\n[1]"), testing::HasSubstr("data.jsonl:2: is an array, not an object"));
  EXPECT_EQ(error_of(""), "data.jsonl: is empty");
  EXPECT_EQ(error_of("[]"), "data.jsonl: has no rows");
  EXPECT_THAT(error_of("{\"a\":1}"), testing::HasSubstr("is no row of a known format"));
  EXPECT_THAT(error_of("\x1f\x8bgarbage"), testing::HasSubstr("is not whole compressed data"));
  EXPECT_THAT(error_of(R"({"text":"t","code":"c","task_id":"x","test_list":["assert True", 3]})"),
              testing::HasSubstr("field 'test_list': item 1 is a number, not a string"));
}

TEST(DatasetTest, MbppTakesSetupImportsAndFindsTheEntryPoint) {
  const auto benchmark = parse_benchmark(
      R"([{"prompt":"p","code":"def g():\n  return 2\ndef f(a): \r\n  return g()\r\n","task_id":7,"test_imports":["import math"],"test_list":["assert f(1) == 2","assert f(2) == 2","assert f(3) == 2"]}])",
      "x.json");
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  const Task& task = benchmark->tasks.front();
  EXPECT_EQ(benchmark->name, "mbpp-sanitized");
  EXPECT_EQ(task.id, "MBPP/7");
  EXPECT_EQ(task.entry_point, "f");
  const Asserts& asserts = std::get<Asserts>(task.hidden);
  EXPECT_EQ(asserts.setup, "import math\n");
  EXPECT_EQ(asserts.statements.size(), 3u);
  EXPECT_THAT(task.visible_asserts, testing::ElementsAre("assert f(1) == 2"));
}

TEST(DatasetTest, MbppPlusInputsGetTheirPythonTypesBack) {
  REQUIRE_BENCHMARK_DATA("evalplus/MbppPlus.jsonl.gz");
  const auto benchmark = load_benchmark(benchmark_data("evalplus/MbppPlus.jsonl.gz"));
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  const auto first_input = [&](std::string_view id) {
    for (const Task& task : benchmark->tasks) {
      if (task.id == id) return to_text(std::get<Differential>(task.hidden).base.front());
    }
    return std::string("no task");
  };
  EXPECT_EQ(first_input("Mbpp/2"), "[(3, 4, 5, 6), (5, 7, 4, 10)]");
  EXPECT_EQ(first_input("Mbpp/106"), "[[5, 6, 7], (9, 10)]");
  EXPECT_EQ(first_input("Mbpp/252"), "[(1.0+0.0j)]");
  EXPECT_EQ(first_input("Mbpp/580"), "((4, 5, (7, 6, (2, 4)), 6, 8),)");
  EXPECT_EQ(first_input("Mbpp/259"), "[((1, 3), (4, 5), (2, 9), (1, 10)), ((6, 7), (3, 9), (1, 1), (7, 3))]");
}

TEST(DatasetTest, BigIntegersAndLoneSurrogatesSurvive) {
  const auto benchmark = parse_benchmark(
      R"({"task_id":"HumanEval/0","prompt":"","entry_point":"f","canonical_solution":"","atol":0,"base_input":[[123456789012345678901234567890,"\ud800"]],"plus_input":{}})",
      "x");
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  const Differential& tests = std::get<Differential>(benchmark->tasks.front().hidden);
  EXPECT_EQ(tests.base.front().items[0].text, "123456789012345678901234567890");
  EXPECT_EQ(tests.base.front().items[1].text, "\xED\xA0\x80");
  EXPECT_TRUE(tests.plus.empty());
}

TEST(DatasetTest, LiveCodeBenchReadsPublicAndPrivateTests) {
  const auto benchmark = parse_benchmark(
      R"({"question_id":"q","question_content":"add","starter_code":"class Solution:","metadata":"{\"func_name\": \"add\"}",)"
      R"("public_test_cases":"[{\"input\": \"1\\n2\", \"output\": \"3\", \"testtype\": \"functional\"}]",)"
      R"("private_test_cases":"[{\"input\": \"[1]\\n{\\\"a\\\": null}\", \"output\": \"[3.5]\", \"testtype\": \"functional\"}]"})",
      "x");
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  const Task& task = benchmark->tasks.front();
  EXPECT_EQ(task.entry_point, "add");
  const JsonCalls& calls = std::get<JsonCalls>(task.hidden);
  ASSERT_EQ(calls.calls.size(), 2u);
  EXPECT_EQ(to_text(calls.calls[0].arguments), "[1, 2]");
  EXPECT_EQ(to_text(calls.calls[1].arguments), "[[1], {'a': None}]");
  EXPECT_EQ(to_text(calls.calls[1].expected), "[3.5]");
  ASSERT_EQ(task.visible_calls.size(), 1u);
  EXPECT_EQ(to_text(task.visible_calls[0].arguments), "[1, 2]");
}

TEST(DatasetTest, PickledTestsAreReadWithoutRunningThem) {
  REQUIRE_BENCHMARK_DATA("sandboxfusion-samples/code_eval_live_code_bench_v1.jsonl");
  const auto benchmark = load_benchmark(benchmark_data("sandboxfusion-samples/code_eval_live_code_bench_v1.jsonl"));
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  ASSERT_EQ(benchmark->tasks.size(), 3u);
  EXPECT_EQ(std::get<Stdio>(benchmark->tasks[0].hidden).tests.front().output, "YES\nYES\nYES\nNO\nNO\nYES\n");
  EXPECT_EQ(benchmark->tasks[1].entry_point, "countSeniors");
  EXPECT_EQ(std::get<JsonCalls>(benchmark->tasks[1].hidden).calls.size(), 14u);
}

TEST(DatasetTest, AppsTakesStdinLinesAndFunctionCalls) {
  const auto benchmark = parse_benchmark(
      R"({"problem_id":1,"question":"q","solutions":"[\"print(1)\"]","input_output":"{\"inputs\": [[\"1\",\"2\"]], \"outputs\": [\"3\\n\"]}"})"
      "\n"
      R"({"problem_id":2,"question":"q","solutions":"","input_output":"{\"fn_name\": \"f\", \"inputs\": [[1, [2]]], \"outputs\": [[5]]}"})",
      "x");
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  EXPECT_EQ(std::get<Stdio>(benchmark->tasks[0].hidden).tests.front().input, "1\n2");
  EXPECT_EQ(benchmark->tasks[0].reference, "print(1)");
  const JsonCalls::Call& call = std::get<JsonCalls>(benchmark->tasks[1].hidden).calls.front();
  EXPECT_EQ(to_text(call.expected), "[5]");
  EXPECT_EQ(to_text(*call.also_accepted), "5");
}

constexpr std::string_view kFamilyRow =
    R"({"task_id":"family/0","description":"Sort the numbers.","function":"f","tests":[["[2, 1]","[1, 2]"],["[]","[]"]],"hidden_tests":[["[3]","[3]"]],"steps":2,"vague":[false,true],"reference":"def f(xs):\n    return sorted(xs)\n"})";

TEST(FamilyTest, TheShippedFileHoldsAThousandTasks) {
  const FileReport report = check_file(family_file(), FIXPOINT_MODELS_SOURCE);
  EXPECT_EQ(report.state, FileState::good) << report.message;
  EXPECT_EQ(find_by_hash(report.sha256), &family_file());
}

TEST(FamilyTest, OneTestIsShownAllAreVisibleAndFurtherOnesHidden) {
  const auto benchmark = parse_benchmark(kFamilyRow, "x");
  ASSERT_TRUE(benchmark) << benchmark.error().text();
  EXPECT_EQ(benchmark->name, "family");
  const Task& task = benchmark->tasks.front();
  EXPECT_THAT(task.visible_asserts, testing::ElementsAre("assert f([2, 1]) == [1, 2]", "assert f([]) == []"));
  EXPECT_THAT(std::get<Asserts>(task.hidden).statements, testing::ElementsAre("assert f([2, 1]) == [1, 2]", "assert f([]) == []", "assert f([3]) == [3]"));
  EXPECT_EQ(task.labels, (std::map<std::string, std::string>{{"steps", "2"}, {"wording", "vague"}}));
  const agent::Task asked = agent_task(*benchmark, task);
  EXPECT_EQ(agent::task_message(asked), "Sort the numbers.\nassert f([2, 1]) == [1, 2]\nAnswer with one fenced Python program.");
  EXPECT_EQ(asked.visible.size(), 2u);
  EXPECT_TRUE(asked.hidden.empty());
}

TEST(FamilyTest, BrokenRowsNameTheField) {
  std::string row(kFamilyRow);
  row.replace(row.find("[[\"[3]\",\"[3]\"]]"), 15, "[[\"[3]\"]]");
  EXPECT_EQ(error_of(row), "data.jsonl:1: field 'hidden_tests': item 0 is not a pair of texts");
}

}  // namespace
}  // namespace fixpoint::evals
