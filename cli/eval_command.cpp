#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <thread>

#include "cli/build_info.h"
#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/default_model.h"
#include "cli/eval_data.h"
#include "cli/eval_model.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "evals/catalog.h"
#include "evals/compare.h"
#include "evals/html_report.h"
#include "evals/junit_report.h"
#include "evals/merge.h"
#include "evals/result_log.h"
#include "evals/runner.h"
#include "evals/self_check.h"
#include "evals/source.h"
#include "sandbox/sandbox.h"

namespace fixpoint::cli {
namespace {

using evals::RunInfo;

struct EvalOptions {
  std::string benchmark;
  std::string data;
  std::string out;
  bool reference = false;
  std::string samples;
  EvalModelOptions model;
  int workers = 2;
  std::size_t limit = 0;
  std::string filter;
  std::string shard;
  bool resume = false;
  bool print_json = false;
  bool quiet = false;
  double cpu_seconds = 0;
  std::string beside;
  std::string outputs;
};

struct ReportOptions {
  std::string beside;
  bool print_json = false;
  bool quiet = false;
};

struct MergeOptions {
  std::vector<std::string> runs;
  std::string out;
  ReportOptions report;
};

struct CompareOptions {
  std::string first;
  std::string second;
  std::optional<double> gate;  ///< percentage points that the second may lose
  bool print_json = false;
};

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return buffer;
}

/// Selection from the options; the error names the option.
tl::expected<evals::Selection, std::string> selection_of(const EvalOptions& options) {
  evals::Selection selection;
  if (!options.filter.empty()) selection.filter = options.filter;
  if (options.limit > 0) selection.limit = options.limit;
  if (options.shard.empty()) return selection;
  char rest = '\0';
  if (options.shard.find_first_not_of("0123456789/") != std::string::npos ||
      std::sscanf(options.shard.c_str(), "%zu/%zu%c", &selection.shard, &selection.shards, &rest) != 2) {
    return tl::unexpected("--shard '" + options.shard + "' is not I/N, as in 1/4");
  }
  return selection;
}

std::string data_status(const evals::Benchmark& benchmark) {
  const evals::KnownFile* known = evals::find_by_hash(benchmark.sha256);
  return known == nullptr ? "not a published file" : "the published file";
}

std::string protections_text(const sandbox::Sandbox& sandbox) {
  std::string out;
  for (const sandbox::Protection protection : sandbox.protections().active) out += (out.empty() ? "" : " ") + std::string(sandbox::name(protection));
  return out;
}

/// The line that is written over and over while a run goes on.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : on_(!quiet), over_(on_ && stdout_is_terminal()) {}
  ~ProgressLine() {
    if (over_ && shown_) std::fputc('\n', stderr);
  }
  void show(const evals::Progress& progress) {
    if (!on_ || (!over_ && progress.seconds - last_ < 10 && progress.done < progress.total)) return;
    if (over_ && progress.seconds - last_ < 0.1 && progress.done < progress.total) return;
    last_ = progress.seconds;
    const double judged = static_cast<double>(progress.done - progress.resumed);
    const double rate = progress.seconds > 0 ? judged / progress.seconds : 0;
    const double left = rate > 0 ? static_cast<double>(progress.total - progress.done) / rate : 0;
    std::string line = std::to_string(progress.done) + "/" + std::to_string(progress.total);
    char buffer[160];
    std::snprintf(buffer, sizeof buffer, "  passed %.1f %%  %.1f/s  %.0f s left", progress.done == 0 ? 0 : 100.0 * static_cast<double>(progress.passed) / static_cast<double>(progress.done),
                  rate, left);
    line += buffer;
    if (progress.prompt_tokens > 0) {
      std::snprintf(buffer, sizeof buffer, "  cached %.0f %%", 100.0 * static_cast<double>(progress.cached_tokens) / static_cast<double>(progress.prompt_tokens));
      line += buffer;
    }
    if (progress.to_repeat > 0) line += "  timeouts to repeat " + std::to_string(progress.to_repeat);
    std::fprintf(stderr, over_ ? "\r\033[K%s" : "%s\n", line.c_str());
    std::fflush(stderr);
    shown_ = true;
  }

 private:
  bool on_;
  bool over_;
  bool shown_ = false;
  double last_ = -100;
};

/// A stop token that SIGINT, SIGTERM and request_stop() request.
class StopOnInterrupt {
 public:
  StopOnInterrupt()
      : watch_([this](const std::stop_token& end) {
          while (!end.stop_requested() && !InterruptFlag::raised()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
          if (InterruptFlag::raised()) source_.request_stop();
        }) {}
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  void request_stop() { source_.request_stop(); }

 private:
  InterruptFlag flag_;
  std::stop_source source_;
  std::jthread watch_;
};

tl::expected<ModelPrograms, std::string> start_source(const EvalOptions& options, const evals::Benchmark& benchmark,
                                                      const std::vector<std::size_t>& tasks, RunInfo& info) {
  if (options.model.named()) return start_model(options.model, benchmark, tasks, info);
  tl::expected<std::unique_ptr<evals::Source>, std::string> source;
  if (options.reference) {
    info.source = "reference";
    info.source_sha256 = benchmark.sha256;
    source = evals::make_reference_source(benchmark, tasks);
  } else {
    auto samples = evals::load_samples(options.samples, benchmark);
    if (!samples) return tl::unexpected(samples.error().text());
    info.source = "samples";
    info.source_name = options.samples;
    info.source_sha256 = evals::sha256_of_file(options.samples);
    source = evals::make_sample_source(benchmark, *std::move(samples), tasks);
  }
  if (!source) return tl::unexpected(source.error());
  return ModelPrograms{nullptr, nullptr, *std::move(source)};
}

tl::expected<void, std::string> write_reports(const std::filesystem::path& folder, const std::string& other_run, const RunInfo& info,
                                              const evals::Summary& summary, const std::vector<evals::Record>& records) {
  std::optional<evals::Beside> beside;
  if (!other_run.empty()) {
    const auto other = evals::read_results(other_run);
    if (!other) return tl::unexpected(other.error());
    beside = evals::Beside{other_run, evals::summarise(evals::in_order(*other), other->info)};
  }
  if (auto written = evals::write_in_order(folder / "results.jsonl", info, records); !written) return written;
  if (auto written = evals::write_whole(folder / "summary.json", evals::to_json(summary, info) + "\n"); !written) return written;
  if (auto written = evals::write_whole(folder / "junit.xml", evals::junit_report(info, summary, records)); !written) return written;
  return evals::write_whole(folder / "report.html", evals::html_report(info, summary, records, beside));
}

/// Writes the reports of a finished run and prints what was asked for; the exit code.
int report(const std::filesystem::path& folder, const ReportOptions& options, const RunInfo& info, const evals::Summary& summary,
           const std::vector<evals::Record>& records) {
  if (auto reports = write_reports(folder, options.beside, info, summary, records); !reports) return fail(reports.error());
  if (!options.quiet) std::printf("%s  reports       %s/{results.jsonl,report.html,junit.xml,summary.json}\n", evals::to_text(summary, info).c_str(), folder.string().c_str());
  if (options.print_json) std::printf("%s\n", evals::to_json(summary, info).c_str());
  return summary.outcomes.contains("not_judged") ? fail("some programs could not be judged: the numbers are incomplete") : kSuccess;
}

/// Before the first session, so that a place that can't be written is known then. A trace that is there stays until there is
/// another.
tl::expected<void, std::string> begin_trace(const EvalModelOptions& options) {
  std::error_code code;
  if (!options.named() || options.record.empty() || std::filesystem::exists(options.record, code)) return {};
  return evals::write_whole(options.record, evals::to_trace({}));
}

tl::expected<void, std::string> write_trace(const EvalModelOptions& options, const evals::LoopRecorder* recorder) {
  if (recorder == nullptr) return {};
  return evals::write_whole(options.record, evals::to_trace(recorder->workload()));
}

/// Whether a known benchmark was named and the file holds none of its edition (humaneval+mini is one of humaneval+).
bool is_another(const std::string& named, const evals::Benchmark& loaded) {
  const bool known = evals::find_known(named) != nullptr || named == evals::family_file().benchmark;
  return known && !named.starts_with(loaded.name);
}

std::string already_there(const std::filesystem::path& file) {
  return file.string() + " is already there: --resume goes on with it, another --out starts anew";
}

/// What would stop a run only after its model was loaded, or at its very end.
tl::expected<void, std::string> look_ahead(const EvalOptions& options, const std::filesystem::path& results) {
  std::error_code code;
  if (!options.resume && std::filesystem::exists(results, code)) return tl::unexpected(already_there(results));
  if (!options.beside.empty()) {
    if (auto other = evals::read_results(options.beside); !other) return tl::unexpected("--beside: " + other.error());
  }
  return {};
}

tl::expected<evals::ResultLog, std::string> open_log(const std::filesystem::path& file, bool resume, const RunInfo& info, evals::StoredRun& stored) {
  std::error_code code;
  std::filesystem::create_directories(file.parent_path(), code);
  if (code) return tl::unexpected(file.parent_path().string() + ": " + code.message());
  if (!std::filesystem::exists(file, code)) return evals::ResultLog::create(file, info);
  if (!resume) return tl::unexpected(already_there(file));
  return evals::ResultLog::append_to(file, info, stored);
}

int report_self_check(const evals::SelfCheck& check, bool quiet) {
  for (const std::string& failure : check.failures) std::fprintf(stderr, "fixpoint: self-check: %s\n", failure.c_str());
  if (!check.passed()) return fail("the self-check failed: no verdict of this machine could be believed, so nothing was run");
  if (!quiet) std::fprintf(stderr, "self-check: %d programs judged as they should be, %.2f s\n", check.programs, check.seconds);
  return kSuccess;
}

int evaluate(const EvalOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  const auto file = benchmark_file(options.benchmark, options.data);
  if (!file) return fail(file.error());
  const auto benchmark = evals::load_benchmark(*file);
  if (!benchmark) return fail(benchmark.error().text());
  if (is_another(options.benchmark, *benchmark)) return wrong_usage(file->string() + " holds " + benchmark->name + ", not " + options.benchmark);
  const auto selection = selection_of(options);
  if (!selection) return wrong_usage(selection.error());
  const auto tasks = evals::select(*benchmark, *selection);
  if (!tasks) return wrong_usage(tasks.error());
  const std::filesystem::path folder = options.out.empty() ? std::filesystem::path("eval-" + benchmark->name) : std::filesystem::path(options.out);
  if (auto ready = look_ahead(options, folder / "results.jsonl"); !ready) return fail(ready.error());
  RunInfo info{.benchmark = benchmark->name, .data_file = file->string(), .data_sha256 = benchmark->sha256, .data_tasks = benchmark->tasks.size(),
               .data_status = data_status(*benchmark), .prompt_id = benchmark->prompt_id, .selection = selection->text(), .version = version(),
               .commit = source_commit(), .machine = machine_name(), .started = utc_now()};
  if (auto trace = begin_trace(options.model); !trace) return fail(trace.error());
  auto programs = start_source(options, *benchmark, *tasks, info);
  if (!programs) return fail(programs.error());
  evals::Source& source = *programs->source;
  info.programs = source.candidates().size();
  if (options.cpu_seconds > 0) info.budget["CPU seconds of a test run"] = short_number(options.cpu_seconds);
  auto sandbox = sandbox::Sandbox::start();
  if (!sandbox) return fail(sandbox.error().message());
  info.sandbox = protections_text(*sandbox);

  evals::StoredRun stored;
  auto log = open_log(folder / "results.jsonl", options.resume, info, stored);
  if (!log) return fail(log.error());
  StopOnInterrupt interrupt;
  const std::stop_token stop = interrupt.token();
  if (const int failed = report_self_check(evals::self_check(*sandbox, *benchmark, stop), options.quiet); failed != kSuccess) return failed;

  evals::JudgeOptions judge_options;
  if (options.cpu_seconds > 0) judge_options.cpu_seconds = options.cpu_seconds;
  if (!options.outputs.empty()) {
    std::error_code code;
    std::filesystem::create_directories(options.outputs, code);
    if (code) return fail("--outputs " + options.outputs + ": " + code.message());
    judge_options.outputs = options.outputs;
  }
  evals::Judge judge(*sandbox, *benchmark, judge_options);
  bool written = true;
  auto result = [&] {
    ProgressLine line(options.quiet);
    return evals::run(*benchmark, source, judge, {.workers = options.workers, .done = std::move(stored.records)},
                      [&](const evals::Record& record, const evals::Progress& progress) {
                        written = log->append(record) && written;
                        if (!written) interrupt.request_stop();  // what is not written has to be judged again
                        line.show(progress);
                      },
                      stop);
  }();
  const auto trace = write_trace(options.model, programs->recorder.get());  // of a run that was stopped, too
  if (!written) return fail((folder / "results.jsonl").string() + " could not be written");
  if (!result.error.empty()) return fail(result.error + " (--resume goes on)");
  if (!result.complete) return fail("stopped after " + std::to_string(result.progress.done) + " of " + std::to_string(result.progress.total) + " programs (--resume goes on)");

  evals::Summary summary = evals::summarise(result.records, info);
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const int reported = report(folder, {options.beside, options.print_json, options.quiet}, info, summary, result.records);
  return trace ? reported : fail(trace.error());
}

int merge_runs(const MergeOptions& options) {
  std::vector<evals::Part> parts;
  for (const std::string& run : options.runs) {
    auto part = evals::read_part(run);
    if (!part) return fail(part.error());
    parts.push_back(*std::move(part));
  }
  const auto merged = evals::merge(std::move(parts));
  if (!merged) return fail(merged.error());
  const std::filesystem::path folder = options.out;
  std::error_code code;
  if (std::filesystem::exists(folder / "results.jsonl", code)) return fail((folder / "results.jsonl").string() + " is already there: another --out starts anew");
  std::filesystem::create_directories(folder, code);
  if (code) return fail(folder.string() + ": " + code.message());
  evals::Summary summary = evals::summarise(merged->records, merged->info);
  summary.seconds = merged->seconds;
  return report(folder, options.report, merged->info, summary, merged->records);
}

int compare_runs(const CompareOptions& options) {
  const auto first = evals::read_results(options.first);
  if (!first) return fail(first.error());
  const auto second = evals::read_results(options.second);
  if (!second) return fail(second.error());
  const auto comparison = evals::compare(*first, *second);
  if (!comparison) return fail(comparison.error());
  std::printf("%s", evals::to_text(*comparison).c_str());
  if (options.print_json) std::printf("%s\n", evals::to_json(*comparison).c_str());
  const double lost = comparison->points_lost();
  if (options.gate && !comparison->complete) return fail("the gate needs whole runs (eval --resume goes on)");
  if (!options.gate || lost <= *options.gate) return kSuccess;
  return fail("B passes " + short_number(lost) + " points less of the tasks than A: above the gate of " + short_number(*options.gate));
}

void add_compare(CLI::App& eval, Run& run) {
  auto* command = eval.add_subcommand("compare", "Two runs, task by task");
  auto options = std::make_shared<CompareOptions>();
  command->add_option("A", options->first, "Folder or results.jsonl of the first run")->required();
  command->add_option("B", options->second, "…of the second run")->required();
  command->add_option("--gate", options->gate, "Fail if B passes fewer of the tasks than A by more than this, in percentage points")->check(number_between(0, 100));
  command->add_flag("--json", options->print_json, "Print one JSON object as the last line");
  command->footer("Exit codes: 0 done, 1 failed or above the gate, 2 wrong usage.");
  command->callback([options, &run] { run = [options] { return compare_runs(*options); }; });
}

void add_merge(CLI::App& eval, Run& run) {
  auto* command = eval.add_subcommand("merge", "One report from the shards of a run");
  auto options = std::make_shared<MergeOptions>();
  command->add_option("RUN", options->runs, "Folder or results.jsonl of each shard")->required();
  command->add_option("--out", options->out, "Folder for the results")->required();
  command->add_option("--beside", options->report.beside, "Results of another run, drawn beside this one in the report");
  command->add_flag("--json", options->report.print_json, "Print one JSON object as the last line");
  command->add_flag("--quiet", options->report.quiet, "No summary");
  command->footer("Exit codes: 0 done, 1 failed, 2 wrong usage.");
  command->callback([options, &run] { run = [options] { return merge_runs(*options); }; });
}

}  // namespace

void add_eval_command(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("eval", "Measure programs on a benchmark (docs/evals.md)");
  auto options = std::make_shared<EvalOptions>();
  command->add_option("benchmark", options->benchmark, "family, humaneval, mbpp, mbpp-sanitized, humaneval+, mbpp+, ldb-mbpp… (fixpoint data list)");
  command->add_option("--data", options->data, "The benchmark's file, or a folder with the published files");
  command->add_option("--out", options->out, "Folder for the results (default: eval-BENCHMARK)");
  auto* reference = command->add_flag("--reference", options->reference, "Programs: the data's own solutions");
  auto* samples = command->add_option("--samples", options->samples, "Programs: a file in the benchmark's sample format");
  reference->excludes(samples);
  options->model.add_to(*command);
  for (auto* programs : {reference, samples}) programs->excludes(command->get_option("--model"))->excludes(command->get_option("--script"));
  command->add_option("--workers", options->workers, "Programs judged at once")->check(CLI::Range(1, 256))->capture_default_str();
  command->add_option("--limit", options->limit, "Only the first N tasks")->transform(positive_count());
  command->add_option("--filter", options->filter, "Only tasks whose id this regular expression finds");
  command->add_option("--shard", options->shard, "Only every N-th task, from the I-th on: I/N");
  command->add_option("--cpu-seconds", options->cpu_seconds, "CPU time of a test run, instead of the benchmark's own limit")->check(positive_seconds());
  command->add_option("--outputs", options->outputs, "Keep canonical solutions' outputs in this folder, and take them from there (HumanEval+, MBPP+)");
  command->add_flag("--resume", options->resume, "Go on with the results in --out");
  command->add_option("--beside", options->beside, "Results of another run, drawn beside this one in the report");
  command->add_flag("--json", options->print_json, "Print one JSON object as the last line");
  command->add_flag("--quiet", options->quiet, "No progress and no summary");
  add_compare(*command, run);
  add_merge(*command, run);
  command->callback([command, options, &run] {
    if (!command->get_subcommands().empty()) return;
    if (options->benchmark.empty()) throw CLI::RequiredError("benchmark");
    if (!options->reference && options->samples.empty() && !name_default_model(options->model.workers)) {
      throw CLI::RequiredError("--reference, --samples or a model (-m)");
    }
    run = [options] { return evaluate(*options); };
  });
}

}  // namespace fixpoint::cli
