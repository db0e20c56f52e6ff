#include "evals/samples.h"

#include <gtest/gtest.h>

namespace fixpoint::evals {
namespace {

Benchmark benchmark_of(std::vector<std::string> ids) {
  Benchmark benchmark;
  benchmark.name = "mbpp+";
  for (std::string& id : ids) benchmark.tasks.emplace_back().id = std::move(id);
  return benchmark;
}

TEST(SamplesTest, IdsMatchInAnyCaseAndByNumber) {
  const Benchmark benchmark = benchmark_of({"Mbpp/2", "Mbpp/3"});
  const auto samples = parse_samples("{\"task_id\":\"MBPP/3\",\"completion\":\"a\"}\n{\"task_id\":2,\"solution\":\"b\"}\n{\"task_id\":\"Mbpp/3\",\"completion\":\"c\"}",
                                     "s", benchmark);
  ASSERT_TRUE(samples) << samples.error().text();
  ASSERT_EQ(samples->size(), 3u);
  EXPECT_EQ((*samples)[0].task, 1u);
  EXPECT_EQ((*samples)[1].task, 0u);
  EXPECT_EQ((*samples)[1].form, Sample::Form::solution);
  EXPECT_EQ((*samples)[2].number, 1);
}

TEST(SamplesTest, MultiplECompletionListsAreManySamples) {
  const Benchmark benchmark = benchmark_of({"HumanEval_0_f"});
  const auto samples = parse_samples("{\"name\":\"HumanEval_0_f\",\"completions\":[\"a\",\"b\"]}", "s", benchmark);
  ASSERT_TRUE(samples);
  ASSERT_EQ(samples->size(), 2u);
  EXPECT_EQ((*samples)[1].text, "b");
  EXPECT_EQ((*samples)[1].number, 1);
}

TEST(SamplesTest, LiveCodeBenchCodeListsAreWholePrograms) {
  const Benchmark benchmark = benchmark_of({"abc301_a", "1873_A"});
  const auto samples = parse_samples("[{\"question_id\":\"1873_A\",\"code_list\":[\"a\",\"b\"]},{\"question_id\":\"abc301_a\",\"code_list\":[\"c\"]}]", "s", benchmark);
  ASSERT_TRUE(samples) << samples.error().text();
  ASSERT_EQ(samples->size(), 3u);
  EXPECT_EQ((*samples)[1].task, 1u);
  EXPECT_EQ((*samples)[1].number, 1);
  EXPECT_EQ((*samples)[1].form, Sample::Form::solution);
  EXPECT_EQ((*samples)[2].text, "c");
}

TEST(SamplesTest, AppsCodesByNumberAreWholePrograms) {
  const Benchmark benchmark = benchmark_of({"APPS/0", "APPS/11"});
  const auto samples = parse_samples("{\"11\": [\"a\", \"b\"], \"0\": \"c\"}", "s", benchmark);
  ASSERT_TRUE(samples) << samples.error().text();
  ASSERT_EQ(samples->size(), 3u);
  EXPECT_EQ((*samples)[1].task, 1u);
  EXPECT_EQ((*samples)[1].number, 1);
  EXPECT_EQ((*samples)[1].form, Sample::Form::solution);
  EXPECT_EQ((*samples)[2].task, 0u);
  EXPECT_EQ((*samples)[2].text, "c");
  EXPECT_EQ(parse_samples("{\"7\": \"a\"}", "s", benchmark).error().text(), "s:1: field '7': is no task of mbpp+");
  EXPECT_EQ(parse_samples("{\"0\": []}", "s", benchmark).error().text(), "s:1: field '0': is empty");
  EXPECT_EQ(parse_samples("{\"0\": 7}", "s", benchmark).error().text(), "s:1: field '0': is a number, not a string");
}

TEST(SamplesTest, UnknownTasksAndRowsWithoutAProgramAreErrors) {
  const Benchmark benchmark = benchmark_of({"Mbpp/2"});
  EXPECT_EQ(parse_samples("{\"task_id\":\"Mbpp/9\",\"completion\":\"\"}", "s", benchmark).error().text(),
            "s:1: field 'task_id': 'Mbpp/9' is no task of mbpp+");
  EXPECT_EQ(parse_samples("{\"task_id\":\"Mbpp/2\"}", "s", benchmark).error().text(),
            "s:1: has no program (completion, solution, completions, code_list or gpt_solution)");
  EXPECT_EQ(parse_samples("{\"task_id\":\"Mbpp/2\",\"completion\":7}", "s", benchmark).error().text(),
            "s:1: field 'completion': is a number, not a string");
}

}  // namespace
}  // namespace fixpoint::evals
