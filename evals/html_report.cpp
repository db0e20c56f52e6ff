#include "evals/html_report.h"

#include <algorithm>
#include <cstdio>

#include "evals/detail/line_diff.h"
#include "evals/detail/svg_chart.h"

namespace fixpoint::evals {
namespace {

using detail::escape_html;

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--fg:#1c1e21;--dim:#667;--bg:#fff;--card:#f5f6f8;--line:#d9dce1;--one:#2563a8;--two:#c2571a;--three:#6d4bb3;--four:#5f6b1f;--good:#2e7d4f;--bad:#b3372f}
@media (prefers-color-scheme:dark){:root{--fg:#e4e6ea;--dim:#9aa0aa;--bg:#15171a;--card:#1e2125;--line:#343940;--one:#6ea8e8;--two:#e8935c;--three:#b79bf0;--four:#b9c56a;--good:#63bd86;--bad:#e5766d}}
*{box-sizing:border-box}
body{font:15px/1.5 system-ui,"DejaVu Sans",sans-serif;color:var(--fg);background:var(--bg);max-width:1080px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:24px;margin:0 0 2px}h2{font-size:17px;margin:34px 0 10px}.dim{color:var(--dim)}p{margin:6px 0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(170px,1fr));gap:12px;margin:20px 0}
.tile{background:var(--card);border-radius:8px;padding:12px 14px}.tile b{display:block;font-size:24px;line-height:1.25}.tile small{color:var(--dim)}
.charts{display:grid;align-items:start;grid-template-columns:repeat(auto-fit,minmax(min(440px,100%),1fr));gap:20px}.chart{background:var(--card);border-radius:8px;padding:14px 16px}
.chart h3{font-size:14px;margin:0 0 8px}svg{width:100%;max-width:600px;height:auto;display:block}svg text{font-size:12px;fill:var(--fg)}svg text.label{fill:var(--dim)}
.grid{stroke:var(--line);stroke-width:1}.line-1{stroke:var(--one);fill:none;stroke-width:2}.line-2{stroke:var(--two);fill:none;stroke-width:2;stroke-dasharray:6 4}
.line-3{stroke:var(--three);fill:none;stroke-width:2;stroke-dasharray:2 3}.line-4{stroke:var(--four);fill:none;stroke-width:2;stroke-dasharray:10 3 2 3}
.dot-1,.bar-1{fill:var(--one)}.dot-2,.bar-2{fill:var(--two)}.dot-3{fill:var(--three)}.dot-4{fill:var(--four)}.bar-3{fill:var(--good)}.bar-4{fill:var(--bad)}
.legend{font-size:13px;margin:6px 0 0;overflow-wrap:anywhere}.legend span{display:inline-block;margin-right:16px}.legend svg{display:inline-block;width:28px;height:4px;margin-right:6px;vertical-align:middle}
table{border-collapse:collapse;width:100%;font-size:14px}th,td{text-align:left;padding:5px 10px 5px 0;border-bottom:1px solid var(--line);vertical-align:top}
.wide{overflow-x:auto}.wide th,.wide td{white-space:nowrap}.facts th{width:170px;font-weight:normal;color:var(--dim)}.facts td{overflow-wrap:anywhere}
@media (max-width:600px){.id{min-width:100px!important}.facts th{width:110px}details.task>summary{gap:8px}.inside{padding-left:0!important}dl{grid-template-columns:76px 1fr!important}}
#filter{font:inherit;padding:6px 10px;border:1px solid var(--line);border-radius:6px;background:var(--bg);color:var(--fg);width:min(340px,100%)}
details.task{border-bottom:1px solid var(--line)}details.task>summary{display:flex;gap:12px;padding:6px 0;cursor:pointer;list-style:none;align-items:baseline}
details.task>summary::-webkit-details-marker{display:none}.id{min-width:190px;overflow-wrap:anywhere}.mark{font-size:12.5px;padding:0 8px;border-radius:9px;border:1px solid;white-space:nowrap}
.good{color:var(--good)}.bad{color:var(--bad)}.why{color:var(--dim);font-size:13px;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;flex:1}
.inside{padding:4px 0 16px 16px}pre{background:var(--card);border-radius:6px;padding:10px 12px;overflow:auto;max-height:420px;font:12.5px/1.45 "DejaVu Sans Mono",monospace;margin:6px 0 12px;white-space:pre-wrap;overflow-wrap:anywhere}
.add{color:var(--good)}.del{color:var(--bad)}h4{margin:14px 0 4px;font-size:14px}dl{display:grid;grid-template-columns:110px 1fr;gap:2px 12px;font-size:13.5px;margin:4px 0}dt{color:var(--dim)}dd{margin:0;font-family:"DejaVu Sans Mono",monospace;font-size:12.5px;white-space:pre-wrap;overflow-wrap:anywhere}
)";

constexpr const char* kScript = R"(
const box=document.getElementById('filter'),tasks=[...document.querySelectorAll('details.task')],count=document.getElementById('shown');
function show(){const words=box.value.toLowerCase().split(/\s+/).filter(Boolean);let n=0;
for(const t of tasks){const ok=words.every(w=>t.dataset.words.includes(w));t.hidden=!ok;n+=ok}count.textContent=n+' shown'}
box.addEventListener('input',show);show();
)";

std::string field(std::string_view name, std::string_view value) {
  return "<span data-field=\"" + std::string(name) + "\">" + escape_html(value) + "</span>";
}
std::string field(std::string_view name, std::int64_t value) { return field(name, std::to_string(value)); }

std::string decimal(double value, int digits) {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
  return buffer;
}

double share(std::int64_t part, std::int64_t whole) { return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole); }

std::string tile(const std::string& big, const std::string& small) { return "<div class=\"tile\"><b>" + big + "</b><small>" + small + "</small></div>"; }

/// Whether tasks have more than one program.
bool several(const Summary& summary) { return summary.programs != summary.tasks; }

std::string from_to(const Interval& interval) { return percent(interval.low) + " to " + percent(interval.high); }

std::string tiles(const Summary& summary) {
  std::string out = "<div class=\"tiles\">";
  out += tile(field("passed", summary.passed) + " / " + field("tasks", summary.tasks),
              std::string(several(summary) ? "tasks passed by any program, " : "tasks passed, ") + percent(share(summary.passed, summary.tasks)) + "<br>95 %: " +
                  from_to(summary.interval));
  if (summary.base_passed) {
    out += tile(field("base_passed", *summary.base_passed) + " / " + field("programs", summary.programs), "pass the base tests alone");
  }
  if (several(summary)) {
    for (const auto& [k, pass] : summary.pass_at) {
      out += tile(percent(pass.value), "pass@" + std::to_string(k) + ", unbiased<br>95 %: " + from_to(pass.interval));
    }
  }
  if (summary.with_visible > 0) {
    out += tile(field("passes_visible_fails_hidden", summary.visible_but_not_hidden),
                "pass the visible tests and fail the hidden ones, of " + field("with_visible_tests", summary.with_visible) + "<br>95 %: " +
                    from_to(wilson(summary.visible_but_not_hidden, summary.with_visible)));
  }
  if (summary.completion_tokens > 0) {
    out += tile(decimal(static_cast<double>(summary.completion_tokens) / std::max<double>(1, static_cast<double>(summary.tasks)), 0),
                "tokens written a task; " + percent(share(summary.cached_tokens, summary.prompt_tokens)) + " of what was read came from the cache");
  }
  out += tile(decimal(summary.seconds, 1) + " s", decimal(summary.sandbox_seconds, 1) + " s in the sandbox; timeouts repeated alone: " + field("repeated_timeouts", summary.repeated));
  return out + "</div>";
}

std::string chart(const std::string& title, const std::string& content) { return "<div class=\"chart\"><h3>" + escape_html(title) + "</h3>" + content + "</div>"; }

std::vector<std::pair<double, double>> points_of(const std::vector<CurvePoint>& curve) {
  std::vector<std::pair<double, double>> out;
  for (const CurvePoint& point : curve) out.emplace_back(static_cast<double>(point.tokens), point.pass_rate);
  return out;
}

std::string rounds_chart(const Summary& summary) {
  std::vector<detail::Bar> bars;
  for (std::size_t i = 0; i < summary.pass_by_round.size(); ++i) {
    const double rate = share(summary.pass_by_round[i], summary.tasks);
    bars.push_back({i == 0 ? "first drafts" : "after repair " + std::to_string(i), rate,
                    std::to_string(summary.pass_by_round[i]) + ": " + percent(rate) + " (" + from_to(wilson(summary.pass_by_round[i], summary.tasks)) + ")", 1});
  }
  return chart(std::string("Tasks passed, by repair round") + (several(summary) ? ", of the first samples" : "") + " (95 %)", detail::bar_chart(bars, 1));
}

std::string outcomes_chart(const Summary& summary) {
  std::vector<detail::Bar> bars;
  for (const auto& [name, count] : summary.outcomes) {
    bars.push_back({name, static_cast<double>(count), std::to_string(count), name == "passed" ? 3 : 4});
  }
  std::stable_sort(bars.begin(), bars.end(), [](const detail::Bar& a, const detail::Bar& b) { return a.value > b.value; });
  return chart("Verdicts", detail::bar_chart(bars));
}

std::string tokens_chart(const Summary& summary, const std::optional<Beside>& beside) {
  detail::LineChart line{.x_label = "tokens written a task", .series = {}};
  const auto add = [&](const std::string& name, const Summary& from) {
    const bool repairs = from.pass_by_round.size() > 1;
    if (!from.tokens_curve.empty() && (repairs || from.resampling_curve.empty())) {
      line.series.push_back({name + (repairs ? ", self-debugging" : ", first drafts"), points_of(from.tokens_curve), true});
    }
    if (from.resampling_curve.empty()) return;
    detail::Series resampling{name + ", resampling", points_of(from.resampling_curve), false};
    resampling.points.insert(resampling.points.begin(), {0, 0});
    line.series.push_back(std::move(resampling));
  };
  add("this run", summary);
  if (beside) add(beside->name, beside->summary);
  if (line.series.empty()) return {};
  return chart("Pass rate against tokens spent", detail::line_chart(line));
}

std::string charts(const Summary& summary, const std::optional<Beside>& beside) {
  std::string out = "<div class=\"charts\">" + outcomes_chart(summary);
  if (summary.pass_by_round.size() > 1) out += rounds_chart(summary);
  return out + tokens_chart(summary, beside) + "</div>";
}

std::string groups(const Summary& summary) {
  std::string out;
  for (const auto& [label, values] : summary.groups) {
    out += "<h2>By " + escape_html(label) + "</h2>" + (several(summary) ? "<p class=\"dim\">Rounds are those of each task's first sample.</p>" : "") + "<div class=\"wide\"><table class=\"groups\"><tr><th>" + escape_html(label) + "</th><th>tasks</th>";
    for (std::size_t i = 0; i < summary.pass_by_round.size(); ++i) out += i == 0 ? "<th>first drafts</th>" : "<th>after repair " + std::to_string(i) + "</th>";
    out += std::string(several(summary) ? "<th>passed by any program</th>" : "<th>passed</th>") + "<th>95 %</th></tr>";
    for (const auto& [value, group] : values) {
      out += "<tr data-group=\"" + escape_html(label + "=" + value) + "\"><td>" + escape_html(value) + "</td><td>" + std::to_string(group.tasks) + "</td>";
      for (const std::int64_t passed : group.pass_by_round) out += "<td>" + percent(share(passed, group.tasks)) + "</td>";
      const Interval interval = wilson(group.passed, group.tasks);
      out += "<td>" + std::to_string(group.passed) + "</td><td>" + from_to(interval) + "</td></tr>";
    }
    out += "</table></div>";
  }
  return out;
}

/// What a task, and a solved one, took; nothing where no model was at work.
std::string costs(const Summary& summary) {
  if (summary.completion_tokens == 0) return {};
  std::string out = "<h2>What it took</h2><div class=\"wide\"><table class=\"costs\"><tr><th></th><th>tokens written</th><th>tokens read</th><th>of them cached</th>"
                    "<th>rounds after the first drafts</th><th>seconds in the sandbox</th><th>seconds</th></tr>";
  const auto row = [&](const char* name, const char* id, const Cost& cost) {
    out += std::string("<tr data-cost=\"") + id + "\"><td>" + name + "</td><td>" + decimal(cost.completion_tokens, 0) + "</td><td>" + decimal(cost.prompt_tokens, 0) +
           "</td><td>" + decimal(cost.cached_tokens, 0) + "</td><td>" + decimal(cost.rounds, 2) + "</td><td>" + decimal(cost.sandbox_seconds, 2) + "</td><td>" +
           decimal(cost.wall_seconds, 1) + "</td></tr>";
  };
  row("a task", "per_task", cost_of_one(summary, summary.tasks));
  if (summary.passed > 0) row("a solved task", "per_solved_task", cost_of_one(summary, summary.passed));
  return out + "</table></div>";
}

std::string facts(const RunInfo& info, const Summary& summary) {
  std::string out = "<table class=\"facts\">";
  const auto row = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) out += "<tr><th>" + escape_html(name) + "</th><td>" + escape_html(value) + "</td></tr>";
  };
  row("Benchmark", info.benchmark);
  row("Data", info.data_file + ", " + std::to_string(info.data_tasks) + " tasks, " + info.data_status);
  row("Data SHA-256", info.data_sha256);
  row("Prompt", info.prompt_id);
  row("Programs from", info.source + (info.source_name.empty() ? "" : ": " + info.source_name));
  row(info.source == "model" ? "Model SHA-256" : "Source SHA-256", info.source_sha256);
  row("Selection", info.selection);
  row("Seed", std::to_string(info.seed));
  row("Budget", budget_text(info));
  std::string levels;
  for (const auto& [name, count] : summary.levels) levels += (levels.empty() ? "" : ", ") + name + " " + std::to_string(count);
  row("Who decided", levels);
  row("Sandbox", info.sandbox);
  row("Version", info.version + (info.commit.empty() ? "" : ", commit " + info.commit));
  row("Machine", info.machine);
  row("Started", info.started);
  row("Verdicts SHA-256", summary.verdict_digest);
  return out + "</table>";
}

std::string diff_block(std::string_view before, std::string_view after) {
  std::string out = "<pre>";
  for (const detail::DiffLine& line : detail::line_diff(before, after)) {
    const std::string text = escape_html(std::string(1, line.mark) + line.text);
    out += line.mark == '+' ? "<span class=\"add\">" + text + "</span>\n" : line.mark == '-' ? "<span class=\"del\">" + text + "</span>\n" : text + "\n";
  }
  return out + "</pre>";
}

std::string attempt_block(const Attempt& attempt, const Attempt* before) {
  std::string out = "<h4>" + escape_html(attempt.round == 0 ? "First draft" : "Round " + std::to_string(attempt.round)) + " <span class=\"dim\">(" +
                    escape_html(attempt.purpose) + ")</span> <span class=\"" + (attempt.passed ? "good" : "bad") + "\">" +
                    std::string(to_string(attempt.outcome)) + "</span></h4><p class=\"dim\">visible tests " + std::to_string(attempt.visible_passed) + " of " +
                    std::to_string(attempt.visible_tests) + "; " + std::to_string(attempt.completion_tokens) + " tokens written, " +
                    std::to_string(attempt.prompt_tokens) + " read (" + std::to_string(attempt.cached_tokens) + " cached)</p>";
  if (!attempt.visible_failure.empty()) out += "<pre>" + escape_html(attempt.visible_failure) + "</pre>";
  if (!attempt.explanation.empty()) out += "<p>" + escape_html(attempt.explanation) + "</p>";
  if (attempt.program.empty()) return out;
  return out + (before != nullptr && attempt.purpose != "draft" && !before->program.empty() ? diff_block(before->program, attempt.program) : "<pre>" + escape_html(attempt.program) + "</pre>");
}

std::string failure_list(const Judgement& judgement) {
  std::string out = "<dl>";
  const auto item = [&](std::string_view name, std::string_view text) {
    if (!text.empty()) out += "<dt>" + std::string(name) + "</dt><dd>" + escape_html(text) + "</dd>";
  };
  item("test", judgement.failed_test);
  item("expected", judgement.expected);
  item("got", judgement.got);
  item("message", judgement.message);
  return out + "</dl>";
}

/// What a reader wants to know of a task without opening it: why it failed, or how it was solved.
std::string headline(const Record& record) {
  const Judgement& judgement = record.judgement;
  if (!judgement.passed()) {
    if (!judgement.message.empty()) return judgement.message.substr(0, 160);
    return (judgement.failed_test + (judgement.got.empty() ? "" : " gave " + judgement.got.substr(0, 60) + ", not " + judgement.expected.substr(0, 60))).substr(0, 160);
  }
  if (record.attempts.empty() || !record.best) return {};
  const int round = record.attempts[*record.best].round;
  return round == 0 ? "first draft" : "by repair " + std::to_string(round);
}

std::string task_block(const Record& record, bool several_samples) {
  const Judgement& judgement = record.judgement;
  const std::string outcome(to_string(judgement.outcome));
  std::string words = record.task + " " + outcome + (record.has_visible && record.visible_passed && !judgement.passed() ? " visible-only" : "");
  std::transform(words.begin(), words.end(), words.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string out = "<details class=\"task\" data-words=\"" + escape_html(words) + "\" data-passed=\"" + (judgement.passed() ? "1" : "0") + "\"><summary><span class=\"id\">" +
                    escape_html(record.task + (several_samples ? " #" + std::to_string(record.sample) : "")) + "</span><span class=\"mark " +
                    (judgement.passed() ? "good" : "bad") + "\">" + outcome + "</span><span class=\"why\">" +
                    escape_html(headline(record)) + "</span></summary><div class=\"inside\"><p class=\"dim\">" +
                    std::to_string(judgement.tests_passed) + " of " + std::to_string(judgement.tests) + " tests, decided by " + escape_html(judgement.level) + ", " +
                    decimal(std::chrono::duration<double>(judgement.cpu).count(), 3) + " s CPU" + (record.repeated ? ", judged again alone" : "") +
                    (record.ended.empty() ? "" : ", " + escape_html(record.ended)) + "</p>";
  if (!judgement.passed()) out += failure_list(judgement);
  const Attempt* before = nullptr;
  for (const Attempt& attempt : record.attempts) {
    out += attempt_block(attempt, attempt.round == 0 ? nullptr : before);
    if (!attempt.program.empty()) before = &attempt;
  }
  if (record.attempts.empty()) out += "<pre>" + escape_html(record.program) + "</pre>";
  return out + "</div></details>";
}

}  // namespace

std::string html_report(const RunInfo& info, const Summary& summary, const std::vector<Record>& records, const std::optional<Beside>& beside) {
  std::string out = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>" +
                    escape_html(info.benchmark) + ": " + std::to_string(summary.passed) + " of " + std::to_string(summary.tasks) + "</title><style>" + kStyle +
                    "</style></head><body><h1>" + escape_html(info.benchmark) + "</h1><p class=\"dim\">" +
                    escape_html(info.source + (info.source_name.empty() ? "" : ": " + info.source_name)) + "</p>";
  out += tiles(summary) + charts(summary, beside) + costs(summary) + groups(summary) + "<h2>What was run</h2>" + facts(info, summary);
  out += "<h2>Tasks</h2><p><input id=\"filter\" placeholder=\"filter: id, verdict, visible-only\" aria-label=\"filter tasks\"> <span class=\"dim\" id=\"shown\"></span></p>";
  for (const Record& record : records) out += task_block(record, several(summary));
  return out + "<script>" + kScript + "</script></body></html>\n";
}

}  // namespace fixpoint::evals
