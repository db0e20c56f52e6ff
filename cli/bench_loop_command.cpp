#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/agent_workers.h"
#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/terminal.h"
#include "engine/model_file.h"
#include "evals/loop_bench.h"
#include "evals/result_log.h"

namespace fixpoint::cli {
namespace {

using nlohmann::json;

struct LoopCommandOptions {
  ModelOptions model;  ///< with --url, `model.path` is the server's name for it
  std::string url;
  std::string key_file;
  std::string tokenizer;
  std::string trace;
  std::string record;
  std::optional<int> sessions, rounds;
  evals::LoopShape shape;
  double think_seconds = 0;
  double think_scale = 1;
  double timeout_seconds = 600;
  bool chat = false;
  bool no_prediction = false;
  bool print_json = false;
};

/// What counts tokens for the sizes of a generated workload.
tl::expected<evals::CountTokens, std::string> counter_of(const LoopCommandOptions& options) {
  const std::string& file = options.tokenizer.empty() && options.url.empty() ? options.model.path : options.tokenizer;
  if (file.empty()) return evals::CountTokens(evals::guessed_tokens);
  auto model = engine::ModelFile::open(file);
  if (!model) return tl::unexpected(model.error().message());
  auto built = engine::Tokenizer::build(model->tokenizer(), file);
  if (!built) return tl::unexpected(built.error().message());
  auto tokenizer = std::make_shared<engine::Tokenizer>(*std::move(built));
  return evals::CountTokens([tokenizer](std::string_view text) {
    return static_cast<std::int64_t>(tokenizer->encode(text, engine::Tokenizer::ControlTokens::as_text).size());
  });
}

/// A trace's first sessions and first rounds, where fewer were asked for.
void cut(evals::LoopWorkload& workload, const LoopCommandOptions& options) {
  if (options.sessions && workload.sessions.size() > static_cast<std::size_t>(*options.sessions)) {
    workload.sessions.resize(static_cast<std::size_t>(*options.sessions));
  }
  if (!options.rounds) return;
  for (evals::LoopSession& session : workload.sessions) {
    if (session.rounds.size() > static_cast<std::size_t>(*options.rounds)) session.rounds.resize(static_cast<std::size_t>(*options.rounds));
  }
}

tl::expected<evals::LoopWorkload, std::string> workload_of(const LoopCommandOptions& options) {
  if (!options.trace.empty()) {
    auto workload = evals::load_trace(options.trace);
    if (!workload) return tl::unexpected(workload.error().text());
    cut(*workload, options);
    return *std::move(workload);
  }
  const auto count = counter_of(options);
  if (!count) return tl::unexpected(count.error());
  evals::LoopShape shape = options.shape;
  shape.sessions = options.sessions.value_or(shape.sessions);
  shape.rounds = options.rounds.value_or(shape.rounds);
  shape.think = std::chrono::milliseconds(static_cast<std::int64_t>(options.think_seconds * 1000));
  return evals::generate_loop(shape, *count);
}

/// The model in this process, or a server; destroyed in this order.
struct Target {
  std::unique_ptr<engine::LanguageModel> model;
  std::unique_ptr<evals::LoopTarget> target;
};

tl::expected<Target, std::string> open_target(const LoopCommandOptions& options, std::size_t sessions) {
  Target out;
  if (options.url.empty()) {
    ModelOptions wanted = options.model;
    wanted.max_queued_requests = std::max(wanted.max_queued_requests, static_cast<int>(sessions) + 1);
    auto model = wanted.load();
    if (!model) return tl::unexpected(model.error());
    out.model = *std::move(model);
    out.target = evals::make_engine_target(*out.model);
    return out;
  }
  agent::OpenAiOptions server{.base_url = options.url, .model = options.model.path};
  if (!options.key_file.empty()) {
    auto key = read_input(options.key_file);
    if (!key) return tl::unexpected(key.error());
    while (!key->empty() && (key->back() == '\n' || key->back() == '\r')) key->pop_back();
    server.key = *std::move(key);
  }
  auto target = evals::make_server_target(std::move(server), std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1000)));
  if (!target) return tl::unexpected("--url: " + target.error());
  out.target = *std::move(target);
  return out;
}

json quantiles_json(const evals::Quantiles& it) { return {{"median", it.median}, {"p99", it.p99}, {"max", it.most}}; }

std::string to_json(const evals::LoopSummary& summary, const evals::LoopRun& run, std::size_t sessions, const evals::LoopTarget& target) {
  json out{{"target", target.name()},
           {"sessions", sessions},
           {"rounds", summary.rounds},
           {"short_answers", summary.short_answers},
           {"failures", run.failures},
           {"wall_s", summary.wall_s},
           {"rounds_per_s", summary.rounds_per_s},
           {"tokens_per_s", summary.tokens_per_s},
           {"ttft_ms", quantiles_json(summary.ttft_ms)},
           {"first_round_ttft_ms", quantiles_json(summary.first_round_ttft_ms)},
           {"later_rounds_ttft_ms", quantiles_json(summary.later_rounds_ttft_ms)},
           {"token_ms", quantiles_json(summary.token_ms)},
           {"gap_ms", quantiles_json(summary.gap_ms)},
           {"prompt_tokens", summary.prompt_tokens},
           {"cached_tokens", summary.cached_tokens},
           {"completion_tokens", summary.completion_tokens}};
  if (const std::string note = target.note(); !note.empty()) out["note"] = note;
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

void print_table(const evals::LoopSummary& summary, std::size_t sessions, const evals::LoopTarget& target) {
  std::printf("%s\n%zu sessions, %zu rounds answered in %.2f s\n\n", target.name().c_str(), sessions, summary.rounds, summary.wall_s);
  std::printf("rounds/s        %10.3f\n", summary.rounds_per_s);
  std::printf("tokens/s        %10.1f   (%lld written)\n", summary.tokens_per_s, static_cast<long long>(summary.completion_tokens));
  const double share = summary.prompt_tokens > 0 ? 100.0 * static_cast<double>(summary.cached_tokens) / static_cast<double>(summary.prompt_tokens) : 0;
  std::printf("prompt tokens   %10lld   (%lld cached, %.0f %%)\n\n", static_cast<long long>(summary.prompt_tokens),
              static_cast<long long>(summary.cached_tokens), share);
  std::printf("%-28s %10s %10s %10s\n", "milliseconds", "median", "p99", "most");
  const auto row = [](const char* name, const evals::Quantiles& it) { std::printf("%-28s %10.1f %10.1f %10.1f\n", name, it.median, it.p99, it.most); };
  row("first token, all rounds", summary.ttft_ms);
  row("first token, first rounds", summary.first_round_ttft_ms);
  row("first token, later rounds", summary.later_rounds_ttft_ms);
  row("a token after the first", summary.token_ms);
  row("between two pieces", summary.gap_ms);
  if (const std::string note = target.note(); !note.empty()) std::printf("\n%s\n", note.c_str());
  if (summary.short_answers > 0) std::printf("\n%zu answers had fewer tokens than asked: the numbers are not comparable\n", summary.short_answers);
}

/// Asked before the clock runs, so that weights, buffers and connections are touched and what a server refuses is known. It has
/// the form of the run's questions and none of their text: nothing of the workload is cached by it.
evals::LoopQuestion warm_up(const LoopCommandOptions& options) {
  evals::LoopQuestion question{.session = "warm-up", .prompt = "\n", .tokens = 2, .prediction = options.no_prediction ? "" : "\n"};
  if (options.chat) question.prompt = std::vector<agent::Message>{{agent::Role::user, "\n"}};
  return question;
}

int run_bench_loop(const LoopCommandOptions& options) {
  const auto workload = workload_of(options);
  if (!workload) return fail(workload.error());
  if (!options.record.empty()) {
    if (auto written = evals::write_whole(options.record, evals::to_trace(*workload)); !written) return fail(written.error());
  }
  auto opened = open_target(options, workload->sessions.size());
  if (!opened) return fail(opened.error());
  evals::LoopTarget& target = *opened->target;
  const InterruptStop interrupt;
  if (auto warm = target.answer(warm_up(options), interrupt.token()); !warm) return fail(warm.error());
  const auto run = evals::run_loop(*workload, target, {.chat = options.chat, .predict = !options.no_prediction, .think_scale = options.think_scale},
                                   interrupt.token());
  const auto summary = evals::summarise(run);
  if (options.print_json) {
    std::printf("%s\n", to_json(summary, run, workload->sessions.size(), target).c_str());
  } else {
    print_table(summary, workload->sessions.size(), target);
  }
  if (run.failures.empty()) return kSuccess;
  return fail(std::to_string(run.failures.size()) + " of " + std::to_string(workload->sessions.size()) + " sessions broke off: " + run.failures.front());
}

void add_shape_options(CLI::App& command, LoopCommandOptions& options) {
  evals::LoopShape& shape = options.shape;
  const auto tokens = [&](const char* name, int& value, const char* words, int least) {
    command.add_option(name, value, words)->check(CLI::Range(least, 1'000'000))->capture_default_str();
  };
  command.add_option("--sessions", options.sessions, "Sessions, all at once (default 8; of a trace: its first so many, default all)")
      ->check(CLI::Range(1, 4096));
  command.add_option("--rounds", options.rounds, "Rounds of each, the first attempt included (default 4; of a trace: at most so many)")
      ->check(CLI::Range(1, 1000));
  tokens("--shared", shape.shared_tokens, "Tokens of context that all sessions begin with", 0);
  tokens("--task", shape.task_tokens, "Tokens of each session's own task", 1);
  tokens("--attempt", shape.attempt_tokens, "Tokens of an attempt", 1);
  tokens("--feedback", shape.feedback_tokens, "Tokens of the feedback between two attempts", 1);
  command.add_option("--edit-rate", shape.edit_rate, "Share of an attempt's lines that the next one changes")
      ->check(number_between(0, 1))
      ->capture_default_str();
  command.add_option("--seed", shape.seed, "Seed of the texts")->transform(seed_number())->capture_default_str();
  command.add_option("--think", options.think_seconds, "Seconds between an answer and the next round: the sandbox")
      ->check(number_between(0, 3600))
      ->capture_default_str();
  command.add_option("--tokenizer", options.tokenizer, "Model file whose tokens the sizes are in (default: -m FILE; with --url: a guess from bytes)");
}

}  // namespace

void add_bench_loop_command(CLI::App& bench, Run& run) {
  auto* command = bench.add_subcommand("loop", "Measure the repair loop's own workload: sessions that share a context and ask again after each verdict");
  auto options = std::make_shared<LoopCommandOptions>();
  options->model.add_to(*command);
  command->get_option("--model")->required(false)->description("Model file or folder, run in this process; with --url: the server's name for its model");
  command->add_option("--url", options->url, "An OpenAI-compatible server instead, such as http://127.0.0.1:8080/v1");
  command->add_option("--api-key-file", options->key_file, "File with the server's key");
  auto* trace = command->add_option("--trace", options->trace, "Replay this trace ('fixpoint eval --record', or --record here) instead of generated sessions");
  command->add_option("--record", options->record, "Write the sessions that are asked to this file, as a trace");
  add_shape_options(*command, *options);
  for (const char* name : {"--shared", "--task", "--attempt", "--feedback", "--edit-rate", "--seed", "--think", "--tokenizer"}) {
    command->get_option(name)->excludes(trace);
  }
  command->add_option("--think-scale", options->think_scale, "Think times are multiplied by this (0: none)")->check(number_between(0, 1000))->capture_default_str();
  command->add_flag("--chat", options->chat, "Ask as a conversation (/chat/completions) instead of plain text (/completions)");
  command->add_flag("--no-prediction", options->no_prediction, "Do not send the attempt before as 'prediction'");
  command->add_option("--timeout", options->timeout_seconds, "Seconds for one answer of a server")->check(number_above(0, 86'400))->capture_default_str();
  command->add_flag("--json", options->print_json, "Print one JSON object");
  command->footer(
      "An answer's length is forced (max_tokens with ignore_eos) and the history holds the trace's attempts, so every target is\n"
      "asked the same bytes. docs/performance.md says what each number means.\n"
      "Exit codes: 0 done, 1 failed or a session broke off, 2 wrong usage.");
  command->callback([options, &run] {
    if (options->url.empty() && options->model.path.empty()) throw CLI::RequiredError("-m FILE or --url");
    run = [options] { return run_bench_loop(*options); };
  });
}

}  // namespace fixpoint::cli
