#include "evals/record.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "evals/detail/rows.h"

namespace fixpoint::evals {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json json_of(const Judgement& judgement) {
  Json out{{"outcome", to_string(judgement.outcome)}, {"tests", judgement.tests}, {"tests_passed", judgement.tests_passed}, {"level", judgement.level}};
  if (judgement.base_passed) out["base_passed"] = *judgement.base_passed;
  const std::pair<const char*, const std::string&> texts[] = {{"failed_test", judgement.failed_test}, {"expected", judgement.expected},
                                                              {"got", judgement.got}, {"message", judgement.message}};
  for (const auto& [name, text] : texts) {
    if (!text.empty()) out[name] = text;
  }
  out["cpu_us"] = judgement.cpu.count();
  out["wall_us"] = judgement.wall.count();
  return out;
}

Outcome outcome_in(const Json& json) {
  const auto outcome = parse_outcome(json.at("outcome").get<std::string>());
  if (!outcome) throw std::invalid_argument("outcome is unknown");
  return *outcome;
}

Judgement judgement_in(const Json& json) {
  Judgement out;
  out.outcome = outcome_in(json);
  out.tests = json.at("tests");
  out.tests_passed = json.at("tests_passed");
  out.level = json.at("level");
  if (json.contains("base_passed")) out.base_passed = json.at("base_passed").get<bool>();
  out.failed_test = json.value("failed_test", "");
  out.expected = json.value("expected", "");
  out.got = json.value("got", "");
  out.message = json.value("message", "");
  out.cpu = std::chrono::microseconds(json.at("cpu_us").get<std::int64_t>());
  out.wall = std::chrono::microseconds(json.at("wall_us").get<std::int64_t>());
  return out;
}

Json json_of(const Attempt& attempt) {
  return {{"round", attempt.round}, {"purpose", attempt.purpose}, {"program", attempt.program}, {"explanation", attempt.explanation},
          {"visible_tests", attempt.visible_tests}, {"visible_passed", attempt.visible_passed}, {"visible_failure", attempt.visible_failure},
          {"passed", attempt.passed}, {"outcome", to_string(attempt.outcome)}, {"prompt_tokens", attempt.prompt_tokens},
          {"cached_tokens", attempt.cached_tokens}, {"completion_tokens", attempt.completion_tokens}, {"sandbox_seconds", attempt.sandbox_seconds}};
}

Attempt attempt_in(const Json& json) {
  return {.round = json.at("round"), .purpose = json.at("purpose"), .program = json.at("program"), .explanation = json.at("explanation"),
          .visible_tests = json.at("visible_tests"), .visible_passed = json.at("visible_passed"), .visible_failure = json.at("visible_failure"),
          .passed = json.at("passed"), .outcome = outcome_in(json), .prompt_tokens = json.at("prompt_tokens"),
          .cached_tokens = json.at("cached_tokens"), .completion_tokens = json.at("completion_tokens"),
          .sandbox_seconds = json.value("sandbox_seconds", 0.0)};
}

/// The members of a RunInfo that are texts.
template <typename Info, typename Visit>
void visit_texts(Info& info, const Visit& visit) {
  visit("benchmark", info.benchmark);
  visit("data_file", info.data_file);
  visit("data_sha256", info.data_sha256);
  visit("data_status", info.data_status);
  visit("prompt_id", info.prompt_id);
  visit("source", info.source);
  visit("source_name", info.source_name);
  visit("source_sha256", info.source_sha256);
  visit("selection", info.selection);
  visit("version", info.version);
  visit("commit", info.commit);
  visit("machine", info.machine);
  visit("sandbox", info.sandbox);
  visit("started", info.started);
}

}  // namespace

std::string RunInfo::difference(const RunInfo& other) const {
  const auto differ = [](const std::string& name, const std::string& mine, const std::string& others) {
    return mine == others ? std::string() : name + ": '" + mine + "' and '" + others + "'";
  };
  std::vector<std::string> found{differ("benchmark", benchmark, other.benchmark), differ("data_sha256", data_sha256, other.data_sha256),
                                 differ("prompt_id", prompt_id, other.prompt_id), differ("source", source, other.source),
                                 differ("source_sha256", source_sha256, other.source_sha256),
                                 differ("seed", std::to_string(seed), std::to_string(other.seed))};
  auto all = budget;
  all.insert(other.budget.begin(), other.budget.end());
  const auto value_in = [](const std::map<std::string, std::string>& of, const std::string& name) {
    const auto at = of.find(name);
    return at == of.end() ? std::string() : at->second;
  };
  for (const auto& [name, value] : all) found.push_back(differ("budget, " + name, value_in(budget, name), value_in(other.budget, name)));
  const auto first = std::find_if(found.begin(), found.end(), [](const std::string& text) { return !text.empty(); });
  return first == found.end() ? std::string() : *first;
}

bool RunInfo::same_run(const RunInfo& other) const {
  return difference(other).empty() && programs == other.programs && selection == other.selection;
}

std::string to_json_line(const Record& record) {
  Json out{{"key", record.key}, {"task", record.task}, {"index", record.index}, {"sample", record.sample}, {"passed", record.judgement.passed()},
           {"judgement", json_of(record.judgement)}, {"program", record.program}, {"wall_seconds", record.wall_seconds}};
  if (!record.labels.empty()) out["labels"] = record.labels;
  if (record.has_visible) out["visible_passed"] = record.visible_passed;
  if (!record.closed) out["closed"] = false;
  if (record.best) out["best"] = *record.best;
  if (record.repeat_due) out["repeat_due"] = true;
  if (record.repeated) out["repeated"] = true;
  if (!record.ended.empty()) out["ended"] = record.ended;
  if (!record.attempts.empty()) {
    Json& attempts = out["attempts"] = Json::array();
    for (const Attempt& attempt : record.attempts) attempts.push_back(json_of(attempt));
  }
  return line_of(out);
}

tl::expected<Record, std::string> parse_record(std::string_view line) {
  try {
    const Json json = Json::parse(line);
    Record out;
    out.key = json.at("key");
    out.task = json.at("task");
    out.index = json.at("index");
    out.sample = json.at("sample");
    out.judgement = judgement_in(json.at("judgement"));
    if (json.contains("labels")) out.labels = json.at("labels").get<std::map<std::string, std::string>>();
    out.program = json.at("program");
    out.wall_seconds = json.at("wall_seconds");
    out.has_visible = json.contains("visible_passed");
    out.visible_passed = json.value("visible_passed", false);
    out.closed = json.value("closed", true);
    if (json.contains("best")) out.best = json.at("best").get<std::size_t>();
    out.repeat_due = json.value("repeat_due", false);
    out.repeated = json.value("repeated", false);
    out.ended = json.value("ended", "");
    if (json.contains("attempts")) {
      for (const Json& attempt : json.at("attempts")) out.attempts.push_back(attempt_in(attempt));
    }
    if (out.best && *out.best >= out.attempts.size()) return tl::unexpected("best: there is no attempt " + std::to_string(*out.best));
    return out;
  } catch (const std::exception& error) {
    const std::string_view what = error.what();
    const std::size_t tag = what.starts_with('[') ? what.find("] ") : std::string_view::npos;  // the library's own name for it
    return tl::unexpected(std::string(tag == std::string_view::npos ? what : what.substr(tag + 2)));
  }
}

std::string to_json_line(const RunInfo& info) {
  Json run;
  visit_texts(info, [&](const char* name, const std::string& value) { run[name] = value; });
  run["data_tasks"] = info.data_tasks;
  run["programs"] = info.programs;
  run["seed"] = info.seed;
  run["budget"] = info.budget;
  return line_of({{"run", run}});
}

std::string budget_text(const RunInfo& info) {
  std::string out;
  for (const auto& [name, value] : info.budget) out += (out.empty() ? "" : ", ") + name + " " + value;
  return out;
}

std::vector<std::pair<std::string, std::string>> described(const RunInfo& info) {
  std::vector<std::pair<std::string, std::string>> out;
  visit_texts(info, [&](const char* name, const std::string& value) { out.emplace_back(name, value); });
  out.emplace_back("data_tasks", std::to_string(info.data_tasks));
  out.emplace_back("programs", std::to_string(info.programs));
  out.emplace_back("seed", std::to_string(info.seed));
  out.emplace_back("budget", budget_text(info));
  return out;
}

tl::expected<RunInfo, std::string> parse_run_info(std::string_view line) {
  try {
    const Json run = Json::parse(line).at("run");
    RunInfo out;
    visit_texts(out, [&](const char* name, std::string& value) { value = run.at(name); });
    out.data_tasks = run.at("data_tasks");
    out.programs = run.at("programs");
    out.seed = run.at("seed");
    out.budget = run.at("budget").get<std::map<std::string, std::string>>();
    return out;
  } catch (const std::exception& error) {
    return tl::unexpected(std::string(error.what()));
  }
}

std::string record_key(std::string_view data_sha256, std::string_view task, int sample, std::string_view source_sha256) {
  std::string all;
  const std::string number = std::to_string(sample);
  for (const std::string_view part : {data_sha256, task, std::string_view(number), source_sha256}) {
    all.append(std::to_string(part.size())).append(":").append(part);
  }
  return detail::sha256_hex(all).substr(0, 32);
}

std::string verdict_digest(const std::vector<Record>& records) {
  std::vector<std::string> lines;
  for (const Record& record : records) {
    std::string line = record.key + ' ' + std::string(to_string(record.judgement.outcome)) + ' ' + std::to_string(record.judgement.tests_passed) + '/' +
                       std::to_string(record.judgement.tests);
    for (const Attempt& attempt : record.attempts) line += attempt.passed ? '+' : '-';
    lines.push_back(std::move(line));
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const std::string& line : lines) all += line + '\n';
  return detail::sha256_hex(all);
}

}  // namespace fixpoint::evals
