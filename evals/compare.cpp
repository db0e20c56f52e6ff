#include "evals/compare.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

namespace fixpoint::evals {
namespace {

struct TaskResult {
  std::size_t index = 0;
  bool passed = false;
};

std::map<std::string, TaskResult> results_of(const StoredRun& run) {
  std::map<std::string, TaskResult> out;
  for (const auto& [key, record] : run.records) {
    TaskResult& result = out[record.task];
    result.index = record.index;
    result.passed = result.passed || record.judgement.passed();
  }
  return out;
}

void add_warnings(const RunInfo& first, const RunInfo& second, Comparison& out) {
  if (first.benchmark != second.benchmark) out.warnings.push_back("the benchmarks differ: " + first.benchmark + " and " + second.benchmark);
  if (first.data_sha256 != second.data_sha256) out.warnings.push_back("the data files differ in their bytes");
  if (first.prompt_id != second.prompt_id) out.warnings.push_back("the prompts differ: " + first.prompt_id + " and " + second.prompt_id);
  if (first.selection != second.selection) {
    out.warnings.push_back("the selections of tasks differ; only common tasks are compared");
  } else if (first.programs != second.programs) {
    out.warnings.push_back("the runs have " + std::to_string(first.programs) + " and " + std::to_string(second.programs) +
                           " programs; a task passes where any of its programs does");
  }
}

void look_for_missing(const char* name, const StoredRun& run, Comparison& out) {
  if (run.records.size() >= run.info.programs) return;
  out.complete = false;
  out.warnings.push_back(std::string(name) + " was stopped after " + std::to_string(run.records.size()) + " of " + std::to_string(run.info.programs) +
                         " programs; only common tasks are compared");
}

/// What was run: a line for what is the same, and one for each run where they differ. The sandbox is in the JSON.
std::string lines_about(const RunInfo& first, const RunInfo& second) {
  const auto a = described(first);
  const auto b = described(second);
  std::string both, only_a, only_b;
  const auto add = [](std::string& line, const std::string& name, const std::string& value) {
    if (!value.empty()) line += (line.empty() ? "" : ", ") + name + " " + value;
  };
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i].first == "sandbox" || a[i].first == "benchmark") continue;
    if (a[i] == b[i]) {
      add(both, a[i].first, a[i].second);
    } else {
      add(only_a, a[i].first, a[i].second);
      add(only_b, b[i].first, b[i].second);
    }
  }
  std::string out = first.benchmark + ": " + both + "\n";
  if (!only_a.empty() || !only_b.empty()) out += "  A  " + only_a + "\n  B  " + only_b + "\n";
  return out;
}

void print_list(std::string& out, std::string_view title, const std::vector<std::string>& tasks) {
  constexpr std::size_t kShown = 20;
  if (tasks.empty()) return;
  out += "  " + std::string(title);
  for (std::size_t i = 0; i < std::min(tasks.size(), kShown); ++i) out += " " + tasks[i];
  if (tasks.size() > kShown) out += " and " + std::to_string(tasks.size() - kShown) + " more";
  out += "\n";
}

}  // namespace

tl::expected<Comparison, std::string> compare(const StoredRun& first, const StoredRun& second) {
  Comparison out{.first = first.info, .second = second.info};
  add_warnings(first.info, second.info, out);
  look_for_missing("A", first, out);
  look_for_missing("B", second, out);
  const auto a = results_of(first);
  const auto b = results_of(second);
  std::vector<std::pair<std::size_t, std::string>> lost;
  std::vector<std::pair<std::size_t, std::string>> gained;
  for (const auto& [task, result] : a) {
    const auto other = b.find(task);
    if (other == b.end()) continue;
    ++out.tasks;
    if (result.passed && other->second.passed) ++out.both;
    if (!result.passed && !other->second.passed) ++out.neither;
    if (result.passed && !other->second.passed) lost.emplace_back(result.index, task);
    if (!result.passed && other->second.passed) gained.emplace_back(result.index, task);
  }
  if (out.tasks == 0) return tl::unexpected(std::string("the two runs have no task in common"));
  for (auto* list : {&lost, &gained}) std::sort(list->begin(), list->end());
  for (const auto& [index, task] : lost) out.lost.push_back(task);
  for (const auto& [index, task] : gained) out.gained.push_back(task);
  out.only_first = static_cast<std::int64_t>(lost.size());
  out.only_second = static_cast<std::int64_t>(gained.size());
  out.p_value = mcnemar_p(out.only_first, out.only_second);
  return out;
}

std::string to_text(const Comparison& comparison) {
  std::string out;
  for (const std::string& warning : comparison.warnings) out += "warning: " + warning + "\n";
  const std::int64_t first = comparison.both + comparison.only_first;
  const std::int64_t second = comparison.both + comparison.only_second;
  out += lines_about(comparison.first, comparison.second);
  char buffer[200];
  std::snprintf(buffer, sizeof buffer, "  tasks %lld   A passes %lld   B passes %lld   difference %+lld   p = %.3g\n", static_cast<long long>(comparison.tasks),
                static_cast<long long>(first), static_cast<long long>(second), static_cast<long long>(second - first), comparison.p_value);
  out += buffer;
  out += "  both " + std::to_string(comparison.both) + ", only A " + std::to_string(comparison.only_first) + ", only B " + std::to_string(comparison.only_second) +
         ", neither " + std::to_string(comparison.neither) + "\n";
  print_list(out, "only A:", comparison.lost);
  print_list(out, "only B:", comparison.gained);
  return out;
}

std::string to_json(const Comparison& comparison) {
  const auto run = [](const RunInfo& info) { return nlohmann::ordered_json::parse(to_json_line(info)).at("run"); };
  return nlohmann::ordered_json{{"tasks", comparison.tasks}, {"both", comparison.both}, {"only_a", comparison.only_first}, {"only_b", comparison.only_second},
                                {"neither", comparison.neither}, {"points_lost", comparison.points_lost()}, {"p_value", comparison.p_value},
                                {"only_a_tasks", comparison.lost}, {"only_b_tasks", comparison.gained}, {"warnings", comparison.warnings},
                                {"run_a", run(comparison.first)}, {"run_b", run(comparison.second)}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace fixpoint::evals
