#include <cstdio>
#include <random>

#include "agent/loop.h"
#include "agent/sandbox_checker.h"
#include "cli/agent_workers.h"
#include "cli/checks.h"
#include "cli/commands.h"
#include "cli/default_model.h"
#include "cli/solve_view.h"
#include "cli/terminal.h"
#include "sandbox/toolchain.h"

namespace fixpoint::cli {
namespace {

struct SolveOptions {
  WorkerOptions workers;
  std::string file;
  std::string tests;
  std::string language;
  std::string function;
  int rounds = 3;
  int drafts = 1;
  std::string feedback = "unit_test+explanation+trace";
  std::int64_t max_tokens = 16'384;
  std::int64_t round_tokens = 2'048;
  double timeout_seconds = 600;
  double temperature = 0;
  std::optional<std::uint64_t> seed;
  bool own_tests = false;
  bool json = false;
};

tl::expected<agent::Task, std::string> read_task(const SolveOptions& options) {
  const auto text = read_text(options.file);
  if (!text) return tl::unexpected(text.error());
  auto task = agent::parse_task(*text, options.file);
  if (!task) return tl::unexpected(options.file + ": " + task.error().message());
  if (!options.language.empty()) task->language = agent::canonical_language(options.language);
  if (!options.function.empty()) task->entry_point = options.function;
  if (!options.tests.empty()) {
    const auto content = read_text(options.tests);
    if (!content) return tl::unexpected(content.error());
    auto tests = agent::parse_tests(*content, options.tests, task->language, &task->setup);
    if (!tests) return tl::unexpected(tests.error().message());
    task->visible = *std::move(tests);
  }
  if (const auto error = agent::validate(*task)) return tl::unexpected(options.file + ": " + error->message());
  return *std::move(task);
}

agent::LoopOptions loop_options(const SolveOptions& options, const agent::FeedbackKinds& feedback, std::vector<agent::Rung> ladder) {
  agent::LoopOptions loop;
  loop.task.rounds = options.rounds;
  loop.task.tokens = options.max_tokens;
  loop.task.wall = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout_seconds * 1000));
  loop.round.tokens = std::min(options.round_tokens, options.max_tokens);
  loop.drafts = options.drafts;
  loop.feedback = feedback;
  loop.temperature = options.temperature;
  loop.seed = options.seed.value_or(std::random_device{}());
  loop.own_tests = options.own_tests;
  loop.ladder = std::move(ladder);
  return loop;
}

int solve(SolveOptions options) {
  const auto feedback = agent::parse_feedback(options.feedback);
  if (!feedback) return wrong_usage("--feedback: " + feedback.error());
  const auto ladder = options.workers.rungs();
  if (!ladder) return wrong_usage(ladder.error());
  const auto task = read_task(options);
  if (!task) return wrong_usage(task.error());
  // Before a model is loaded.
  if (const auto refusal = agent::refused_language(task->language, sandbox::find_toolchains())) return wrong_usage(*refusal);
  if (options.own_tests && (task->language != "python" || task->entry_point.empty() || !task->visible.empty())) {
    std::fprintf(stderr, "fixpoint: --own-tests does nothing here: it is for Python tasks without tests whose function is named\n");
  }
  const std::string resume_with = options.workers.as_typed(), show_with = options.workers.journal_as_typed();
  if (!name_default_model(options.workers)) return wrong_usage("no model named: pass -m FILE (GGUF, or a folder with safetensors) or -m http://HOST:PORT/v1");
  auto workers = Workers::start(options.workers, Workers::Needs::everything);
  if (!workers) return fail(workers.error());
  agent::Loop loop((*workers)->services());
  const int code = run_session(
      [&](std::stop_token stop, const agent::OnEvent& on_event) {
        return loop.run(*task, loop_options(options, *feedback, *ladder), std::move(stop), on_event);
      },
      {.json = options.json, .before = {}, .resume_with = resume_with, .show_with = show_with});
  (*workers)->finish();
  return code;
}

}  // namespace

void add_solve_command(CLI::App& app, Run& run) {
  auto* command = app.add_subcommand("solve", "Write a program for a task: generate, run, explain, repair.");
  auto options = std::make_shared<SolveOptions>();
  command->add_option("FILE", options->file, "the task: Markdown, JSON, or a source file with a docstring; - reads stdin")->required();
  command->add_option("--tests", options->tests, "file with assertions, a check() function, or tests in the language's own style");
  command->add_option("--lang", options->language, "language of the program");
  command->add_option("--function", options->function, "the function that tests call");
  command->add_option("--rounds", options->rounds, "repair rounds")->check(CLI::Range(0, agent::kMaxRounds))->capture_default_str();
  command->add_option("--drafts", options->drafts, "first drafts, written in parallel")->check(CLI::Range(1, 16))->capture_default_str();
  command->add_option("--feedback", options->feedback, "simple, or any of unit_test, explanation, trace joined by +")->capture_default_str();
  command->add_option("--max-tokens", options->max_tokens, "tokens that models may write in all")->transform(positive_count())->capture_default_str();
  command->add_option("--round-tokens", options->round_tokens, "tokens of one answer")->transform(positive_count())->capture_default_str();
  command->add_option("--timeout", options->timeout_seconds, "seconds for everything")->check(positive_seconds())->capture_default_str();
  command->add_option("--temperature", options->temperature, "of the first draft and of repairs")->check(number_between(0, 2))->capture_default_str();
  command->add_option("--seed", options->seed, "seed of all sampling (drawn and recorded where not given)")->transform(seed_number());
  command->add_flag("--own-tests", options->own_tests, "where there are no tests, let the model write some");
  command->add_flag("--json", options->json, "print one event a line");
  options->workers.add_model_options(*command);
  options->workers.add_journal_option(*command);
  options->workers.add_ladder_option(*command);
  command->callback([options, &run] { run = [options] { return solve(*options); }; });
}

}  // namespace fixpoint::cli
