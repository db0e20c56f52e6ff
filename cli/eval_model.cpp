#include "cli/eval_model.h"

#include "cli/checks.h"

#include <algorithm>
#include <cstdio>

#include "agent/prompt.h"
#include "evals/model_source.h"
#include "kernels/kv_type.h"

namespace fixpoint::cli {
namespace {

agent::LoopOptions loop_options(const EvalModelOptions& options, const agent::FeedbackKinds& feedback) {
  agent::LoopOptions loop;
  loop.task.rounds = options.rounds;
  loop.task.tokens = options.max_tokens;
  loop.task.wall = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1000));
  loop.round.tokens = std::min(options.round_tokens, options.max_tokens);
  loop.drafts = options.drafts;
  loop.feedback = feedback;
  loop.temperature = options.temperature;
  loop.branch_temperature = options.branch_temperature;
  loop.seed = options.seed;
  return loop;
}

}  // namespace

std::string short_number(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%g", value);
  return buffer;
}

void EvalModelOptions::add_to(CLI::App& app) {
  workers.add_model_options(app);
  app.add_option("--samples-per-task", samples, "sessions a task, each with a seed of its own")->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--rounds", rounds, "repair rounds (0: first drafts only)")->check(CLI::Range(0, agent::kMaxRounds))->capture_default_str();
  app.add_option("--drafts", drafts, "first drafts, written in parallel")->check(CLI::Range(1, 16))->capture_default_str();
  app.add_option("--feedback", feedback, "simple, or any of unit_test, explanation, trace joined by +")
      ->check([](const std::string& text) {
        const auto kinds = agent::parse_feedback(text);
        return kinds ? std::string() : kinds.error();
      })
      ->capture_default_str();
  app.add_option("--max-tokens", max_tokens, "tokens that a session may write in all")->transform(positive_count())->capture_default_str();
  app.add_option("--round-tokens", round_tokens, "tokens of one answer")->transform(positive_count())->capture_default_str();
  app.add_option("--timeout", timeout_seconds, "seconds a session")->check(positive_seconds())->capture_default_str();
  app.add_option("--total-tokens", total_tokens, "tokens that all sessions together may write (else no limit)")->transform(positive_count());
  app.add_option("--total-sandbox", total_sandbox_seconds, "seconds that programs of all sessions together may run (else no limit)")->check(positive_seconds());
  app.add_option("--temperature", temperature, "of the first draft and of repairs")->check(number_between(0, 2))->capture_default_str();
  app.add_option("--branch-temperature", branch_temperature, "of further drafts and of branches")->check(number_between(0, 2))->capture_default_str();
  app.add_option("--seed", seed, "seed of all sampling")->transform(seed_number())->capture_default_str();
  app.add_option("--record", record, "write the sessions to this file as a trace for 'fixpoint bench loop --trace'");
}

tl::expected<ModelPrograms, std::string> start_model(const EvalModelOptions& options, const evals::Benchmark& benchmark,
                                                     const std::vector<std::size_t>& tasks, evals::RunInfo& info) {
  const auto feedback = agent::parse_feedback(options.feedback);
  if (!feedback) return tl::unexpected("--feedback: " + feedback.error());
  ModelPrograms out;
  auto workers = Workers::start(options.workers, Workers::Needs::everything);
  if (!workers) return tl::unexpected(workers.error());
  out.workers = *std::move(workers);
  const std::string& name = options.workers.model.empty() ? options.workers.script : options.workers.model;
  std::string hash = evals::sha256_of_file(name);
  evals::ModelSourceOptions source{.loop = loop_options(options, *feedback), .samples = options.samples, .model_sha256 = hash.empty() ? name : hash};
  if (options.total_tokens) source.batch.tokens = *options.total_tokens;
  if (options.total_sandbox_seconds) source.batch.sandbox = std::chrono::milliseconds(static_cast<std::int64_t>(*options.total_sandbox_seconds * 1000));
  info.source = options.workers.model.empty() ? "script" : "model";
  info.source_name = name;
  info.source_sha256 = hash.empty() ? evals::model_source_sha256(source, benchmark.prompt_id) : hash;
  info.seed = options.seed;
  info.budget = {{"rounds", std::to_string(options.rounds)}, {"drafts", std::to_string(options.drafts)}, {"samples", std::to_string(options.samples)},
                 {"tokens", std::to_string(options.max_tokens)}, {"round tokens", std::to_string(options.round_tokens)},
                 {"seconds", short_number(options.timeout_seconds)}, {"temperature", short_number(options.temperature)},
                 {"branch temperature", short_number(options.branch_temperature)}, {"feedback", agent::to_string(*feedback)},
                 {"loop prompt", std::string(agent::kPromptVersion)}};
  // What is usual is left out, so that older runs can go on.
  if (const auto type = kernels::parse_kv_type(options.workers.kv_type); type && *type != kernels::KvType::f16) info.budget["KV type"] = to_string(*type);
  if (!options.workers.chat_template.empty()) info.budget["chat template"] = options.workers.chat_template;
  if (options.total_tokens) info.budget["tokens in all"] = std::to_string(*options.total_tokens);
  if (options.total_sandbox_seconds) info.budget["sandbox seconds in all"] = short_number(*options.total_sandbox_seconds);
  if (!options.record.empty()) {
    out.recorder = std::make_unique<evals::LoopRecorder>();
    source.on_event = [recorder = out.recorder.get()](const std::string& session, const agent::Stamped& event) { recorder->take(session, event); };
  }
  agent::Services services = out.workers->services();
  services.journal = nullptr;  // results.jsonl is the record of a run
  out.source = evals::make_model_source(benchmark, tasks, services, std::move(source));
  return out;
}

}  // namespace fixpoint::cli
