#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

#include "evals/compare.h"
#include "evals/html_report.h"
#include "evals/junit_report.h"
#include "evals/merge.h"
#include "evals/result_log.h"
#include "evals/source.h"

namespace fixpoint::evals {
namespace {

Record record_of(std::size_t index, int sample, Outcome outcome) {
  Record record;
  record.task = "T/" + std::to_string(index);
  record.index = index;
  record.sample = sample;
  record.key = record_key("data", record.task, sample, "source");
  record.program = "print('<&\">')\n";
  record.judgement.outcome = outcome;
  record.judgement.tests = 3;
  record.judgement.tests_passed = outcome == Outcome::passed ? 3 : 1;
  record.judgement.level = "separate_tests";
  record.judgement.message = outcome == Outcome::passed ? "" : "bad \x01 byte, ]]> and \xFF";
  record.judgement.base_passed = outcome == Outcome::passed;
  record.has_visible = true;
  record.visible_passed = index % 2 == 0;
  return record;
}

std::vector<Record> some_records() {
  std::vector<Record> out;
  for (std::size_t i = 0; i < 10; ++i) out.push_back(record_of(i, 0, i % 3 == 0 ? Outcome::passed : i % 3 == 1 ? Outcome::wrong_answer : Outcome::time_limit));
  out[1].attempts = {{.round = 0, .purpose = "draft", .program = "a\nb\n", .visible_tests = 1, .visible_passed = 0, .completion_tokens = 20},
                     {.round = 1, .purpose = "repair", .program = "a\nc\n", .visible_tests = 1, .visible_passed = 1, .completion_tokens = 30}};
  out[1].best = 1;
  out[2].repeated = true;
  out[3].labels = {{"steps", "2"}, {"wording", "vague"}};
  return out;
}

RunInfo some_info() {
  return {.benchmark = "mbpp+", .data_file = "f", .data_sha256 = "0123456789abcdef0123456789abcdef", .data_tasks = 10, .programs = 10, .source = "samples",
          .budget = {{"rounds", "3"}}};
}

TEST(RecordTest, ALineGivesTheSameRecordBack) {
  for (const Record& record : some_records()) {
    const std::string line = to_json_line(record);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto back = parse_record(line);
    ASSERT_TRUE(back) << back.error();
    EXPECT_EQ(to_json_line(*back), line);
  }
  EXPECT_TRUE(parse_run_info(to_json_line(some_info()))->same_run(some_info()));
}

TEST(RecordTest, BrokenLinesAreErrors) {
  EXPECT_FALSE(parse_record(""));
  EXPECT_FALSE(parse_record("{}"));
  EXPECT_FALSE(parse_record("[1]"));
  std::string line = to_json_line(some_records()[0]);
  line.replace(line.find("\"passed\",\"tests\""), 8, "\"nothing\"");
  EXPECT_FALSE(parse_record(line));
}

TEST(RecordTest, TheDigestSeesVerdictsAndNotTimes) {
  std::vector<Record> records = some_records();
  const std::string digest = verdict_digest(records);
  records[0].wall_seconds = 99;
  records[0].judgement.cpu = std::chrono::seconds(9);
  std::swap(records[3], records[4]);
  EXPECT_EQ(verdict_digest(records), digest);
  records[0].judgement.outcome = Outcome::crashed;
  EXPECT_NE(verdict_digest(records), digest);
}

class ReportTest : public testing::Test {
 protected:
  ReportTest() : folder_(std::filesystem::path(testing::TempDir()) / ("evals_report_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ReportTest() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(ReportTest, AHalfLineIsCutOffAndTheRunGoesOn) {
  const std::filesystem::path file = folder_ / "results.jsonl";
  const std::vector<Record> records = some_records();
  {
    auto log = ResultLog::create(file, some_info());
    ASSERT_TRUE(log) << log.error();
    ASSERT_TRUE(log->append(records[0]));
    ASSERT_TRUE(log->append(records[1]));
  }
  EXPECT_FALSE(ResultLog::create(file, some_info())) << "an existing file must not be overwritten";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 7);
  StoredRun stored;
  {
    auto log = ResultLog::append_to(file, some_info(), stored);
    ASSERT_TRUE(log) << log.error();
    EXPECT_EQ(stored.records.size(), 1u);
    ASSERT_TRUE(log->append(records[2]));
    ASSERT_TRUE(log->append(records[2]));
  }
  const auto run = read_results(folder_);
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(run->records.size(), 2u);
  EXPECT_TRUE(run->records.contains(records[0].key));
  EXPECT_TRUE(run->records.contains(records[2].key));
}

TEST_F(ReportTest, ARecordThatCouldNotBeWrittenSpoilsNoOther) {
  const std::filesystem::path file = folder_ / "results.jsonl";
  const std::vector<Record> records = some_records();
  auto log = ResultLog::create(file, some_info());
  ASSERT_TRUE(log) << log.error();
  ASSERT_TRUE(log->append(records[0]));
  // Room for ten bytes more, as on a full disk.
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  rlimit small = usual;
  small.rlim_cur = std::filesystem::file_size(file) + 10;
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool written = log->append(records[1]);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_FALSE(written);
  ASSERT_TRUE(log->append(records[2]));
  const auto run = read_results(folder_);
  ASSERT_TRUE(run) << run.error();
  EXPECT_EQ(run->records.size(), 2u);
  EXPECT_TRUE(run->records.contains(records[2].key));
}

TEST_F(ReportTest, ResultsOfAnotherRunAreRefused) {
  const std::filesystem::path file = folder_ / "results.jsonl";
  ASSERT_TRUE(ResultLog::create(file, some_info()));
  RunInfo other = some_info();
  other.seed = 7;
  StoredRun stored;
  const auto log = ResultLog::append_to(file, other, stored);
  ASSERT_FALSE(log);
  EXPECT_THAT(log.error(), testing::HasSubstr("is of another run"));
}

TEST_F(ReportTest, ABrokenLineInTheMiddleIsAnErrorWithItsNumber) {
  std::ofstream(folder_ / "results.jsonl") << to_json_line(some_info()) << "\n{\"key\":1}\n" << to_json_line(some_records()[0]) << "\n";
  const auto run = read_results(folder_);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error(), testing::HasSubstr("results.jsonl:2: "));
}

TEST(HtmlReportTest, EveryNumberEqualsTheRecords) {
  const std::vector<Record> records = some_records();
  const Summary summary = summarise(records);
  const std::string html = html_report(some_info(), summary, records);
  std::map<std::string, std::string> shown;
  const std::regex field("data-field=\"([a-z_]+)\">([^<]*)<");
  for (std::sregex_iterator it(html.begin(), html.end(), field), end; it != end; ++it) {
    const auto [found, is_new] = shown.emplace((*it)[1], (*it)[2]);
    EXPECT_TRUE(is_new || found->second == (*it)[2]) << (*it)[1];
  }
  std::int64_t passed = 0;
  std::int64_t visible_only = 0;
  std::int64_t repeated = 0;
  for (const Record& record : records) {
    passed += record.judgement.passed() ? 1 : 0;
    visible_only += record.visible_passed && !record.judgement.passed() ? 1 : 0;
    repeated += record.repeated ? 1 : 0;
  }
  EXPECT_EQ(shown.at("passed"), std::to_string(passed));
  EXPECT_EQ(shown.at("tasks"), std::to_string(records.size()));
  EXPECT_EQ(shown.at("base_passed"), std::to_string(passed));
  EXPECT_EQ(shown.at("passes_visible_fails_hidden"), std::to_string(visible_only));
  EXPECT_EQ(shown.at("repeated_timeouts"), std::to_string(repeated));
  const std::regex rows("<details class=\"task\"[^>]*data-passed=\"([01])\"");
  std::int64_t row_count = 0;
  std::int64_t row_passed = 0;
  for (std::sregex_iterator it(html.begin(), html.end(), rows), end; it != end; ++it, ++row_count) row_passed += (*it)[1] == "1" ? 1 : 0;
  EXPECT_EQ(row_count, static_cast<std::int64_t>(records.size()));
  EXPECT_EQ(row_passed, passed);
  const Interval interval = wilson(passed, static_cast<std::int64_t>(records.size()));
  const std::string rate = std::to_string(passed) + ": 40.0 % (" + percent(interval.low) + " to " + percent(interval.high) + ")</text>";
  EXPECT_THAT(html, testing::ContainsRegex(">after repair 1</text><rect[^>]*/><text[^>]*>" + std::string("4: 40\\.0 % ")));
  EXPECT_THAT(html, testing::HasSubstr(rate));
}

TEST(HtmlReportTest, ProgramsAreEscapedAndNothingIsFetched) {
  const std::vector<Record> records = some_records();
  const std::string html = html_report(some_info(), summarise(records), records);
  EXPECT_NE(html.find("print('&lt;&amp;&quot;&gt;')"), std::string::npos);
  EXPECT_EQ(html.find("print('<"), std::string::npos);
  for (const char* loader : {"http://", "https://", "src=", "<link", "@import", "url("}) EXPECT_EQ(html.find(loader), std::string::npos) << loader;
  EXPECT_NE(html.find("<span class=\"del\">-b</span>"), std::string::npos);
  EXPECT_NE(html.find("<span class=\"add\">+c</span>"), std::string::npos);
}

TEST(JunitReportTest, CountsAgreeAndBytesThatXmlForbidsAreReplaced) {
  std::vector<Record> records = some_records();
  records[4].judgement.outcome = Outcome::not_judged;
  const std::string xml = junit_report(some_info(), summarise(records), records);
  EXPECT_THAT(xml, testing::HasSubstr("tests=\"10\" failures=\"5\" errors=\"1\""));
  EXPECT_EQ(xml.find('\x01'), std::string::npos);
  EXPECT_EQ(xml.find('\xFF'), std::string::npos);
  EXPECT_THAT(xml, testing::HasSubstr("]]&gt;"));
}

TEST(HtmlReportTest, WhatATaskTookEqualsTheRecords) {
  std::vector<Record> records = some_records();
  records[1].attempts[0].prompt_tokens = 100;
  records[1].attempts[1].prompt_tokens = 160;
  records[1].attempts[1].cached_tokens = 120;
  records[1].attempts[1].sandbox_seconds = 3;
  records[1].judgement.wall = std::chrono::seconds(1);
  records[1].wall_seconds = 8;
  const Summary summary = summarise(records, 3);
  const std::string html = html_report(some_info(), summary, records);
  // Ten tasks, of which four are solved; 50 tokens written in two attempts, of which one is a repair.
  EXPECT_THAT(html, testing::HasSubstr("<tr data-cost=\"per_task\"><td>a task</td><td>5</td><td>26</td><td>12</td><td>0.10</td><td>0.40</td><td>0.8</td></tr>"));
  EXPECT_THAT(html, testing::HasSubstr("<tr data-cost=\"per_solved_task\"><td>a solved task</td><td>12</td><td>65</td><td>30</td><td>0.25</td><td>1.00</td><td>2.0</td></tr>"));
  EXPECT_THAT(to_json(summary, some_info()), testing::HasSubstr("\"per_task\":{\"rounds\":0.1,\"prompt_tokens\":26.0,\"cached_tokens\":12.0,\"completion_tokens\":5.0,\"sandbox_seconds\":0.4,\"wall_seconds\":0.8}"));
}

TEST(HtmlReportTest, AFreshDraftIsShownWholeAndARepairAsADifference) {
  std::vector<Record> records = some_records();
  EXPECT_THAT(html_report(some_info(), summarise(records), records), testing::HasSubstr("<span class=\"del\">-b</span>"));
  records[1].attempts[1].purpose = "draft";
  EXPECT_THAT(html_report(some_info(), summarise(records), records), testing::Not(testing::HasSubstr("<span class=\"del\">-b</span>")));
}

TEST(SummaryTest, PassAtKIsGivenOnlyWhereEveryTaskHasKSamples) {
  std::vector<Record> records;
  for (int sample = 0; sample < 3; ++sample) records.push_back(record_of(0, sample, sample == 0 ? Outcome::passed : Outcome::wrong_answer));
  for (int sample = 0; sample < 2; ++sample) records.push_back(record_of(1, sample, Outcome::wrong_answer));
  const Summary summary = summarise(records);
  EXPECT_EQ(summary.tasks, 2);
  EXPECT_EQ(summary.passed, 1);
  ASSERT_EQ(summary.pass_at.size(), 2u);
  EXPECT_NEAR(summary.pass_at.at(1).value, 1.0 / 6, 1e-12);
  EXPECT_NEAR(summary.pass_at.at(2).value, 1.0 / 3, 1e-12);
}

TEST(SummaryTest, TheLargestKIsWhatEveryTaskHasSamplesFor) {
  std::vector<Record> records;
  for (std::size_t task = 0; task < 2; ++task) {
    for (int sample = 0; sample < 4; ++sample) records.push_back(record_of(task, sample, task == 0 && sample == 3 ? Outcome::passed : Outcome::wrong_answer));
  }
  const Summary summary = summarise(records);
  ASSERT_EQ(summary.pass_at.size(), 4u);
  EXPECT_DOUBLE_EQ(summary.pass_at.at(4).value, 0.5);
}

TEST(SummaryTest, TasksThatAllPassDoNotMakePassAtKCertain) {
  std::vector<Record> records;
  for (std::size_t task = 0; task < 5; ++task) records.push_back(record_of(task, 0, Outcome::passed));
  const Summary::PassAt pass = summarise(records).pass_at.at(1);
  EXPECT_EQ(pass.value, 1);
  EXPECT_DOUBLE_EQ(pass.interval.low, wilson(5, 5).low);
  EXPECT_EQ(pass.interval.high, 1);
}

TEST(SummaryTest, ASingleTaskDoesNotMakePassAtKCertain) {
  std::vector<Record> records;
  for (int sample = 0; sample < 4; ++sample) records.push_back(record_of(0, sample, sample == 0 ? Outcome::passed : Outcome::wrong_answer));
  const Summary::PassAt pass = summarise(records).pass_at.at(1);
  EXPECT_DOUBLE_EQ(pass.value, 0.25);
  EXPECT_EQ(pass.interval.low, 0);
  EXPECT_DOUBLE_EQ(pass.interval.high, wilson(0, 1).high);
}

TEST(SummaryTest, SharesHaveTheirIntervals) {
  const auto json = nlohmann::json::parse(to_json(summarise(some_records()), some_info()));
  const auto expect_interval = [&](const nlohmann::json& shown, const Interval& wanted) {
    EXPECT_DOUBLE_EQ(shown.at(0).get<double>(), wanted.low);
    EXPECT_DOUBLE_EQ(shown.at(1).get<double>(), wanted.high);
  };
  expect_interval(json.at("interval_95"), wilson(4, 10));
  // Four tasks pass as they are, and task 1's session failed in both rounds.
  ASSERT_EQ(json.at("pass_by_round_interval_95").size(), 2u);
  expect_interval(json.at("pass_by_round_interval_95").at(1), wilson(4, 10));
  // Of those with an even index 0 and 6 pass; 2, 4 and 8 only pass what is visible.
  EXPECT_EQ(json.at("passes_visible_fails_hidden"), 3);
  expect_interval(json.at("passes_visible_fails_hidden_interval_95"), wilson(3, 10));
}

TEST(SummaryTest, EveryReportSaysWhatWasRun) {
  RunInfo info = some_info();
  info.prompt_id = "prompt-1";
  info.source_sha256 = "model-hash";
  info.seed = 4711;
  info.commit = "commit-1";
  info.machine = "machine-1";
  const std::vector<Record> records = some_records();
  const Summary summary = summarise(records, info);
  StoredRun run{info, {{records.front().key, records.front()}}};
  const auto comparison = compare(run, run);
  ASSERT_TRUE(comparison) << comparison.error();
  const std::map<std::string, std::string> reports{{"jsonl", to_json_line(info)}, {"summary", to_json(summary, info)}, {"html", html_report(info, summary, records)},
                                                   {"junit", junit_report(info, summary, records)}, {"comparison", to_text(*comparison)}, {"comparison json", to_json(*comparison)}};
  for (const auto& [name, report] : reports) {
    for (const std::string& fact : {info.data_sha256, info.prompt_id, info.source_sha256, std::string("4711"), info.commit, info.machine, std::string("rounds")}) {
      EXPECT_THAT(report, testing::HasSubstr(fact)) << name;
    }
  }
  EXPECT_EQ(nlohmann::json::parse(to_json(summary, info)).at("run").at("data_tasks"), 10);
  EXPECT_THAT(reports.at("junit"), testing::HasSubstr("<property name=\"budget\" value=\"rounds 3\"/>"));
  EXPECT_EQ(nlohmann::json::parse(to_json(*comparison)).at("run_b").at("seed"), 4711);
}

TEST(HtmlReportTest, SelfDebuggingAndResamplingStandBesideEachOther) {
  std::vector<Record> records{record_of(0, 0, Outcome::passed), record_of(0, 1, Outcome::wrong_answer)};
  for (Record& record : records) {
    record.attempts = {{.round = 0, .purpose = "draft", .program = "a", .visible_tests = 1, .completion_tokens = 20},
                       {.round = 1, .purpose = "repair", .program = "b", .visible_tests = 1, .visible_passed = 1, .passed = record.judgement.passed(), .completion_tokens = 30}};
    record.best = 1;
  }
  const Summary debugging = summarise(records, some_info());
  const std::string both = html_report(some_info(), debugging, records);
  EXPECT_THAT(both, testing::HasSubstr("this run, self-debugging</span>"));
  EXPECT_THAT(both, testing::HasSubstr("this run, resampling</span>"));
  EXPECT_THAT(both, testing::Not(testing::HasSubstr("class=\"line-3\"")));
  for (Record& record : records) {
    record.attempts.pop_back();
    record.best = 0;
  }
  const Summary resampling = summarise(records, 0);
  EXPECT_THAT(html_report(some_info(), debugging, records, Beside{"other", resampling}), testing::HasSubstr("other, resampling</span>"));
  EXPECT_THAT(html_report(some_info(), resampling, records), testing::Not(testing::HasSubstr("self-debugging")));
}

TEST(SummaryTest, GroupsAreCountedApartAndRoundsThatNobodyNeededAreThere) {
  std::vector<Record> records = some_records();
  for (Record& record : records) record.labels = {{"steps", record.index < 4 ? "2" : "3"}};
  const Summary summary = summarise(records, 3);
  EXPECT_EQ(summary.pass_by_round.size(), 4u);
  EXPECT_EQ(summary.pass_by_round.back(), 4);
  EXPECT_EQ(summary.groups.at("steps").at("2").tasks, 4);
  EXPECT_EQ(summary.groups.at("steps").at("2").passed, 2);
  EXPECT_EQ(summary.groups.at("steps").at("3").pass_by_round, (std::vector<std::int64_t>{2, 2, 2, 2}));
  EXPECT_THAT(to_json(summary, some_info()), testing::HasSubstr("\"pass_by_round\":[0.4,0.4,0.4,0.4]"));
  EXPECT_THAT(html_report(some_info(), summary, records), testing::HasSubstr("data-group=\"steps=3\"><td>3</td><td>6</td><td>33.3 %</td>"));
}

TEST(CompareTest, TasksAreMatchedAndDifferencesWarned) {
  StoredRun first{some_info(), {}};
  StoredRun second{some_info(), {}};
  second.info.prompt_id = "another";
  for (const Record& record : some_records()) {
    first.records[record.key] = record;
    Record other = record;
    other.judgement.outcome = record.index < 5 ? Outcome::passed : Outcome::wrong_answer;
    second.records[record.key] = other;
  }
  const auto comparison = compare(first, second);
  ASSERT_TRUE(comparison);
  EXPECT_EQ(comparison->both, 2);        // 0, 3
  EXPECT_EQ(comparison->only_first, 2);  // 6, 9
  EXPECT_EQ(comparison->only_second, 3); // 1, 2, 4
  EXPECT_EQ(comparison->neither, 3);
  EXPECT_DOUBLE_EQ(comparison->points_lost(), -10);
  EXPECT_THAT(comparison->gained, testing::ElementsAre("T/1", "T/2", "T/4"));
  EXPECT_THAT(comparison->warnings, testing::ElementsAre(testing::HasSubstr("prompts differ")));
  EXPECT_TRUE(comparison->complete);
  second.records.erase(second.records.begin());
  second.info.prompt_id = first.info.prompt_id;
  const auto stopped = compare(first, second);
  ASSERT_TRUE(stopped);
  EXPECT_FALSE(stopped->complete);
  EXPECT_EQ(stopped->tasks, 9);
  EXPECT_THAT(stopped->warnings, testing::ElementsAre(testing::HasSubstr("B was stopped after 9 of 10 programs")));
  second.info.programs = 9;
  EXPECT_THAT(compare(first, second)->warnings, testing::ElementsAre(testing::HasSubstr("10 and 9 programs")));
  second.records.clear();
  EXPECT_FALSE(compare(first, second));
}

/// Every third of the records, from the `shard`-th on.
Part part_of(std::size_t shard) {
  Part part;
  part.name = "run" + std::to_string(shard);
  part.seconds = 2;
  part.run.info = some_info();
  part.run.info.selection = "--filter T --shard " + std::to_string(shard) + "/3";
  part.run.info.machine = shard == 2 ? "another" : "one";
  part.run.info.started = "2026-01-0" + std::to_string(9 - shard);
  for (const Record& record : some_records()) {
    if (record.index % 3 == shard - 1) part.run.records.emplace(record.key, record);
  }
  part.run.info.programs = part.run.records.size();
  return part;
}

TEST(MergeTest, AllShardsAreTheUndividedRun) {
  const auto merged = merge({part_of(2), part_of(3), part_of(1)});
  ASSERT_TRUE(merged) << merged.error();
  RunInfo undivided = some_info();
  undivided.selection = "--filter T";
  EXPECT_TRUE(merged->info.same_run(undivided)) << merged->info.selection;
  EXPECT_EQ(merged->info.machine, "one + another");
  EXPECT_EQ(merged->info.started, "2026-01-06");
  EXPECT_EQ(merged->seconds, 6);
  const std::vector<Record> records = some_records();
  ASSERT_EQ(merged->records.size(), records.size());
  for (std::size_t i = 0; i < records.size(); ++i) EXPECT_EQ(to_json_line(merged->records[i]), to_json_line(records[i]));
  EXPECT_EQ(summarise(merged->records, merged->info).verdict_digest, verdict_digest(records));
}

TEST(MergeTest, SomeShardsSayWhichTheyAre) {
  EXPECT_EQ(merge({part_of(3), part_of(1)})->info.selection, "--filter T --shard 1/3 + --filter T --shard 3/3");
  Part limited = part_of(1);
  limited.run.info.selection = "--shard 1/1 --limit 4";
  EXPECT_EQ(merge({limited})->info.selection, "--shard 1/1 --limit 4");
}

TEST(MergeTest, WhatIsNotOneRunIsRefusedByItsField) {
  const auto refusal = [](Part other) {
    const auto merged = merge({part_of(1), std::move(other)});
    return merged ? std::string() : merged.error();
  };
  EXPECT_EQ(refusal(part_of(2)), "");
  EXPECT_THAT(refusal(part_of(1)), testing::StartsWith("run1 and run1 overlap: both have task T/"));
  Part other = part_of(2);
  other.run.info.seed = 7;
  EXPECT_EQ(refusal(other), "run1 and run2 are not of one run: seed: '0' and '7'");
  other = part_of(2);
  other.run.info.budget["rounds"] = "4";
  EXPECT_EQ(refusal(other), "run1 and run2 are not of one run: budget, rounds: '3' and '4'");
  other = part_of(2);
  other.run.info.prompt_id = "p";
  EXPECT_EQ(refusal(other), "run1 and run2 are not of one run: prompt_id: '' and 'p'");
  other = part_of(2);
  other.run.records.erase(other.run.records.begin());
  EXPECT_EQ(refusal(other), "run2 is not finished: it holds 2 of 3 programs (--resume goes on)");
  other = part_of(2);
  other.run.records.begin()->second.repeat_due = true;
  EXPECT_EQ(refusal(other), "run2 is not finished: 1 timeouts are still to be repeated (--resume goes on)");
  other = part_of(2);
  other.run.info.budget["tokens in all"] = "100";
  EXPECT_THAT(merge({other}).error(), testing::HasSubstr("each part had the budget 'tokens in all' for itself"));
}

TEST(SelectionTest, ShardsPartitionTheTasks) {
  Benchmark benchmark;
  for (int i = 0; i < 23; ++i) benchmark.tasks.emplace_back().id = "T/" + std::to_string(i);
  std::vector<std::size_t> all;
  for (std::size_t shard = 1; shard <= 4; ++shard) {
    const auto tasks = select(benchmark, {.shard = shard, .shards = 4});
    ASSERT_TRUE(tasks) << tasks.error();
    all.insert(all.end(), tasks->begin(), tasks->end());
  }
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), 23u);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i);
  EXPECT_EQ(select(benchmark, {.filter = "/1.$", .limit = 3})->size(), 3u);
  EXPECT_FALSE(select(benchmark, {.filter = "("}));
  EXPECT_FALSE(select(benchmark, {.shard = 5, .shards = 4}));
  EXPECT_FALSE(select(benchmark, {.filter = "nothing"}));
}

}  // namespace
}  // namespace fixpoint::evals
