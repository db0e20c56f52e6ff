#include "evals/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

namespace fixpoint::evals {
namespace {

using Json = nlohmann::ordered_json;

TaskScore score_of(const Record& record) {
  TaskScore out;
  out.passed = record.judgement.passed();
  out.has_visible = record.has_visible;
  out.visible_passed = record.visible_passed;
  for (const Attempt& attempt : record.attempts) {
    if (attempt.program.empty() && attempt.completion_tokens == 0) continue;
    out.attempts.push_back({attempt.round, attempt.completion_tokens, attempt.visible_passed,
                            attempt.visible_tests > 0 && attempt.visible_passed == attempt.visible_tests, attempt.passed});
  }
  if (record.attempts.empty()) out.attempts.push_back({0, 0, record.visible_passed ? 1 : 0, record.visible_passed, out.passed});
  return out;
}

/// Records of one task stand side by side.
std::vector<std::vector<const Record*>> by_task(const std::vector<Record>& records) {
  std::map<std::size_t, std::vector<const Record*>> groups;
  for (const Record& record : records) groups[record.index].push_back(&record);
  std::vector<std::vector<const Record*>> out;
  for (auto& [index, group] : groups) {
    std::sort(group.begin(), group.end(), [](const Record* a, const Record* b) { return a->sample < b->sample; });
    out.push_back(std::move(group));
  }
  return out;
}

void add_pass_at(const std::vector<std::vector<const Record*>>& groups, Summary& out) {
  std::vector<Tally> tallies;
  for (const auto& group : groups) {
    Tally tally{static_cast<std::int64_t>(group.size()), 0};
    for (const Record* record : group) tally.correct += record->judgement.passed() ? 1 : 0;
    tallies.push_back(tally);
  }
  std::set<std::int64_t> ks{1, 2, 3, 5, 10, 20, 50, 100, 200};
  for (const Tally& tally : tallies) ks.insert(tally.samples);  // the largest k of all is what the task with the fewest has
  for (const std::int64_t k : ks) {
    const auto value = mean_pass_at_k(tallies, k);
    if (!value) break;
    std::vector<double> each;
    for (const Tally& tally : tallies) each.push_back(pass_at_k(tally, k));
    const auto tasks = static_cast<std::int64_t>(each.size());
    // Tasks that are all alike show no spread however often they are drawn; that there could be others is Wilson's to say.
    const bool alike = std::all_of(each.begin(), each.end(), [&](double one) { return one == each.front(); });
    out.pass_at[k] = {*value, alike ? wilson(std::lround(*value * static_cast<double>(tasks)), tasks) : bootstrap_mean(each)};
  }
}

/// Several samples of one draft each: what resampling gives at each budget.
std::vector<TaskScore> resampling_scores(const std::vector<std::vector<const Record*>>& groups) {
  std::vector<TaskScore> out;
  for (const auto& group : groups) {
    TaskScore& task = out.emplace_back();
    for (const Record* record : group) {
      for (const AttemptScore& attempt : score_of(*record).attempts) {
        if (attempt.round == 0) task.attempts.push_back(attempt);
      }
    }
  }
  return out;
}

void add_record(const Record& record, Summary& out) {
  ++out.programs;
  out.programs_passed += record.judgement.passed() ? 1 : 0;
  ++out.outcomes[std::string(to_string(record.judgement.outcome))];
  if (!record.judgement.level.empty()) ++out.levels[record.judgement.level];
  if (record.judgement.base_passed) out.base_passed = out.base_passed.value_or(0) + (*record.judgement.base_passed ? 1 : 0);
  out.repeated += record.repeated ? 1 : 0;
  out.sandbox_seconds += std::chrono::duration<double>(record.judgement.wall).count();
  out.cpu_seconds += std::chrono::duration<double>(record.judgement.cpu).count();
  out.program_seconds += record.wall_seconds;
  int rounds = 0;
  for (const Attempt& attempt : record.attempts) {
    rounds = std::max(rounds, attempt.round);
    out.sandbox_seconds += attempt.sandbox_seconds;
    out.prompt_tokens += attempt.prompt_tokens;
    out.cached_tokens += attempt.cached_tokens;
    out.completion_tokens += attempt.completion_tokens;
  }
  out.rounds += rounds;
}

/// Each label's values with their tasks, by the first sample of each task.
void add_groups(const std::vector<std::vector<const Record*>>& tasks, int rounds, Summary& out) {
  std::map<std::pair<std::string, std::string>, std::vector<TaskScore>> scores;
  for (const auto& task : tasks) {
    const Record& first = *task.front();
    for (const auto& [label, value] : first.labels) {
      Summary::Group& group = out.groups[label][value];
      ++group.tasks;
      group.passed += std::any_of(task.begin(), task.end(), [](const Record* record) { return record->judgement.passed(); }) ? 1 : 0;
      scores[{label, value}].push_back(score_of(first));
    }
  }
  for (const auto& [name, of_group] : scores) out.groups[name.first][name.second].pass_by_round = pass_by_round(of_group, rounds);
}

std::vector<double> rates(const std::vector<std::int64_t>& passed, std::int64_t tasks) {
  std::vector<double> out;
  for (const std::int64_t count : passed) out.push_back(tasks == 0 ? 0 : static_cast<double>(count) / static_cast<double>(tasks));
  return out;
}

Json json_of(const std::map<std::string, Summary::Group>& groups) {
  Json out = Json::object();
  for (const auto& [value, group] : groups) {
    const Interval interval = wilson(group.passed, group.tasks);
    out[value] = {{"tasks", group.tasks}, {"passed", group.passed}, {"pass_by_round", rates(group.pass_by_round, group.tasks)},
                  {"interval_95", Json::array({interval.low, interval.high})}};
  }
  return out;
}

Json json_of(const Interval& interval) { return Json::array({interval.low, interval.high}); }

Json intervals(const std::vector<std::int64_t>& passed, std::int64_t tasks) {
  Json out = Json::array();
  for (const std::int64_t count : passed) out.push_back(json_of(wilson(count, tasks)));
  return out;
}

Json json_of(const std::vector<CurvePoint>& curve) {
  Json out = Json::array();
  for (const CurvePoint& point : curve) out.push_back({point.tokens, point.pass_rate});
  return out;
}

Json json_of(const Cost& cost) {
  return {{"rounds", cost.rounds}, {"prompt_tokens", cost.prompt_tokens}, {"cached_tokens", cost.cached_tokens},
          {"completion_tokens", cost.completion_tokens}, {"sandbox_seconds", cost.sandbox_seconds}, {"wall_seconds", cost.wall_seconds}};
}

std::string number(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

}  // namespace

std::string percent(double share) { return number("%.1f %%", share * 100); }

std::vector<TaskScore> session_scores(const std::vector<Record>& records) {
  std::vector<TaskScore> out;
  for (const auto& group : by_task(records)) out.push_back(score_of(*group.front()));
  return out;
}

Summary summarise(const std::vector<Record>& records, const RunInfo& info) {
  const auto rounds = info.budget.find("rounds");
  return summarise(records, rounds == info.budget.end() ? 0 : std::atoi(rounds->second.c_str()));
}

Summary summarise(const std::vector<Record>& records, int rounds) {
  Summary out;
  const auto groups = by_task(records);
  out.tasks = static_cast<std::int64_t>(groups.size());
  for (const auto& group : groups) {
    out.passed += std::any_of(group.begin(), group.end(), [](const Record* record) { return record->judgement.passed(); }) ? 1 : 0;
  }
  for (const Record& record : records) add_record(record, out);
  out.interval = wilson(out.passed, out.tasks);
  add_pass_at(groups, out);
  const std::vector<TaskScore> scores = session_scores(records);
  for (const TaskScore& score : scores) {
    out.with_visible += score.has_visible ? 1 : 0;
    for (const AttemptScore& attempt : score.attempts) rounds = std::max(rounds, attempt.round);
  }
  out.pass_by_round = pass_by_round(scores, rounds);
  add_groups(groups, rounds, out);
  out.visible_but_not_hidden = visible_but_not_hidden(scores);
  if (out.completion_tokens > 0) {
    out.tokens_curve = tokens_curve(scores);
    const bool several = std::any_of(groups.begin(), groups.end(), [](const auto& group) { return group.size() > 1; });
    if (several) out.resampling_curve = resampling_curve(resampling_scores(groups));
  }
  out.verdict_digest = verdict_digest(records);
  return out;
}

Cost cost_of_one(const Summary& summary, std::int64_t tasks) {
  const double count = std::max<double>(1, static_cast<double>(tasks));
  return {.rounds = static_cast<double>(summary.rounds) / count, .prompt_tokens = static_cast<double>(summary.prompt_tokens) / count,
          .cached_tokens = static_cast<double>(summary.cached_tokens) / count, .completion_tokens = static_cast<double>(summary.completion_tokens) / count,
          .sandbox_seconds = summary.sandbox_seconds / count, .wall_seconds = summary.program_seconds / count};
}

std::string to_json(const Summary& summary, const RunInfo& info) {
  Json out{{"tasks", summary.tasks}, {"passed", summary.passed}, {"pass_by_round", rates(summary.pass_by_round, summary.tasks)},
           {"seconds", summary.seconds}, {"passed_by_round", summary.pass_by_round},
           {"pass_by_round_interval_95", intervals(summary.pass_by_round, summary.tasks)},
           {"benchmark", info.benchmark}, {"interval_95", json_of(summary.interval)}, {"programs", summary.programs},
           {"programs_passed", summary.programs_passed}};
  for (const auto& [k, pass] : summary.pass_at) out["pass_at"][std::to_string(k)] = {{"value", pass.value}, {"interval_95", json_of(pass.interval)}};
  if (summary.base_passed) out["base_passed"] = *summary.base_passed;
  for (const auto& [label, groups] : summary.groups) out["groups"][label] = json_of(groups);
  out["with_visible_tests"] = summary.with_visible;
  out["passes_visible_fails_hidden"] = summary.visible_but_not_hidden;
  out["passes_visible_fails_hidden_interval_95"] = json_of(wilson(summary.visible_but_not_hidden, summary.with_visible));
  out["outcomes"] = summary.outcomes;
  out["levels"] = summary.levels;
  out["repeated_timeouts"] = summary.repeated;
  out["tokens"] = {{"prompt", summary.prompt_tokens}, {"cached", summary.cached_tokens}, {"completion", summary.completion_tokens}};
  out["per_task"] = json_of(cost_of_one(summary, summary.tasks));
  if (summary.passed > 0) out["per_solved_task"] = json_of(cost_of_one(summary, summary.passed));
  out["sandbox_seconds"] = summary.sandbox_seconds;
  out["cpu_seconds"] = summary.cpu_seconds;
  if (!summary.tokens_curve.empty()) out["tokens_curve"] = json_of(summary.tokens_curve);
  if (!summary.resampling_curve.empty()) out["resampling_curve"] = json_of(summary.resampling_curve);
  out["verdicts_sha256"] = summary.verdict_digest;
  out["data_sha256"] = info.data_sha256;
  out.update(Json::parse(to_json_line(info)));  // "run": what was run, as at the head of results.jsonl
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_text(const Summary& summary, const RunInfo& info) {
  std::string out = info.benchmark + ", " + info.source + (info.source_name.empty() ? "" : " " + info.source_name) + "\n";
  const double share = summary.tasks == 0 ? 0 : static_cast<double>(summary.passed) / static_cast<double>(summary.tasks);
  out += "  passed        " + std::to_string(summary.passed) + " of " + std::to_string(summary.tasks) + " tasks, " + percent(share) + " (95 %: " +
         percent(summary.interval.low) + " to " + percent(summary.interval.high) + ")\n";
  if (summary.base_passed) out += "  base tests    " + std::to_string(*summary.base_passed) + " of " + std::to_string(summary.programs) + " programs\n";
  if (summary.programs != summary.tasks) {
    for (const auto& [k, pass] : summary.pass_at) {
      out += "  pass@" + std::to_string(k) + std::string(k < 10 ? 8 : 7, ' ') + percent(pass.value) + " (95 %: " + percent(pass.interval.low) + " to " +
             percent(pass.interval.high) + ")\n";
    }
  }
  if (summary.pass_by_round.size() > 1) {
    out += "  by round     ";
    for (std::size_t i = 0; i < summary.pass_by_round.size(); ++i) out += (i == 0 ? " " : ", ") + std::to_string(i) + ": " + std::to_string(summary.pass_by_round[i]);
    out += "\n";
  }
  for (const auto& [label, groups] : summary.groups) {
    for (const auto& [value, group] : groups) {
      std::string name = "  " + label + " " + value;
      name.resize(std::max<std::size_t>(name.size() + 1, 16), ' ');
      out += name + std::to_string(group.tasks) + " tasks, passed by round:";
      for (const double rate : rates(group.pass_by_round, group.tasks)) out += " " + percent(rate);
      out += "\n";
    }
  }
  if (summary.with_visible > 0) {
    out += "  visible only  " + std::to_string(summary.visible_but_not_hidden) + " of " + std::to_string(summary.with_visible) + " pass the visible tests and not the hidden ones\n";
  }
  out += "  verdicts     ";
  for (const auto& [name, count] : summary.outcomes) out += " " + name + " " + std::to_string(count);
  out += "\n";
  if (summary.completion_tokens > 0) {
    out += "  tokens        " + std::to_string(summary.completion_tokens) + " written, " + std::to_string(summary.prompt_tokens) + " read, of which " +
           percent(summary.prompt_tokens == 0 ? 0 : static_cast<double>(summary.cached_tokens) / static_cast<double>(summary.prompt_tokens)) + " cached\n";
    const auto line = [&out](const char* name, const Cost& cost) {
      out += name + number("%.0f tokens written, ", cost.completion_tokens) + number("%.0f read, ", cost.prompt_tokens) + number("%.0f of them cached, ", cost.cached_tokens) +
             number("%.1f rounds after the first drafts, ", cost.rounds) + number("%.2f s in the sandbox, ", cost.sandbox_seconds) + number("%.1f s\n", cost.wall_seconds);
    };
    line("  a task        ", cost_of_one(summary, summary.tasks));
    if (summary.passed > 0) line("  a solved task ", cost_of_one(summary, summary.passed));
  }
  out += "  time          " + number("%.1f s", summary.seconds) + ", sandbox " + number("%.1f s", summary.sandbox_seconds) + "; timeouts repeated alone: " +
         std::to_string(summary.repeated) + "\n";
  out += "  data          " + info.data_sha256.substr(0, 16) + "…, " + std::to_string(info.data_tasks) + " tasks, " + info.data_status + "\n";
  return out;
}

}  // namespace fixpoint::evals
