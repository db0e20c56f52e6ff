#include "evals/model_source.h"

#include <algorithm>

#include "agent/prompt.h"
#include "evals/contest_checker.h"
#include "evals/detail/rows.h"

namespace fixpoint::evals {
namespace {

/// Prompts that end inside a signature are closed for people and models alike by the answer; they are shown as code.
std::string statement_of(const Task& task) {
  std::string out = task.statement;
  if (task.prompt.empty()) return out;
  if (!out.empty()) out += "\n\n";
  const std::string fence = task.language == "bash" ? "bash" : task.language;
  const bool starter = !task.statement.empty();
  out += starter ? "Start from this code:\n" : "Complete this function. Answer with the whole function.\n";
  return out + "```" + fence + "\n" + task.prompt + (task.prompt.ends_with('\n') ? "" : "\n") + "```\n";
}

/// Judged with the reference checker's imports, whole or by calls.
bool is_contest(const Task& task) {
  return task.language == "python" && (std::holds_alternative<Stdio>(task.hidden) || std::holds_alternative<JsonCalls>(task.hidden));
}

/// A call as a test that a model may see, by the name that the starter code has for it.
std::string assertion_of(const Task& task, const JsonCalls::Call& call) {
  constexpr std::size_t kWhole = std::string::npos;
  std::string arguments;
  for (const sandbox::Value& argument : call.arguments.items) arguments += (arguments.empty() ? "" : ", ") + to_text(argument, kWhole);
  const bool in_class = task.prompt.find("class Solution") != std::string::npos;
  return (in_class ? "assert Solution()." : "assert ") + task.entry_point + "(" + arguments + ") == " + to_text(call.expected, kWhole);
}

std::string failure_text(const agent::Judgement& judgement) {
  if (judgement.failures.empty()) return judgement.message.substr(0, 1000);
  const agent::FailedTest& failure = judgement.failures.front();
  std::string out = failure.test;
  if (!failure.expected.empty()) out += "\nexpected " + failure.expected;
  if (!failure.actual.empty()) out += "\ngot " + failure.actual;
  if (!failure.difference.empty()) out += "\ndifference: " + failure.difference;
  if (!failure.error.empty()) out += "\n" + failure.error;
  return out;
}

Attempt attempt_of(const agent::Round& round) {
  Attempt out;
  out.round = round.number;
  out.purpose = to_string(round.ask.purpose);
  out.program = round.program;
  out.explanation = round.explanation;
  out.prompt_tokens = round.usage.prompt_tokens;
  out.cached_tokens = round.usage.cached_tokens;
  out.completion_tokens = round.usage.completion_tokens;
  if (round.judgement) {
    out.visible_tests = round.judgement->total;
    out.visible_passed = round.judgement->passed;
    out.sandbox_seconds = std::chrono::duration<double>(round.judgement->sandbox).count();
    if (!round.passed()) out.visible_failure = failure_text(*round.judgement);
  }
  return out;
}

class ModelSource : public Source {
 public:
  ModelSource(const Benchmark& benchmark, const std::vector<std::size_t>& tasks, agent::Services services, ModelSourceOptions options)
      : benchmark_(benchmark), services_(services), contest_checker_(make_contest_checker(*services.checker)), options_(std::move(options)),
        batch_(options_.batch) {
    const std::string identity = model_source_sha256(options_, benchmark.prompt_id);
    for (const std::size_t task : tasks) {
      for (int sample = 0; sample < options_.samples; ++sample) {
        candidates_.push_back({task, sample, record_key(benchmark.sha256, benchmark.tasks[task].id, sample, identity)});
      }
    }
  }

  [[nodiscard]] const std::vector<Candidate>& candidates() const override { return candidates_; }

  [[nodiscard]] tl::expected<Answer, std::string> answer(std::size_t index, std::stop_token stop) override {
    const Candidate& candidate = candidates_[index];
    const Task& task = benchmark_.tasks[candidate.task];
    agent::LoopOptions options = options_.loop;
    // Samples differ by their seed; the same sample of the same run is the same again.
    options.seed = options_.loop.seed * 1'000'003 + static_cast<std::uint64_t>(candidate.sample);
    agent::Services services = services_;
    if (is_contest(task)) services.checker = contest_checker_.get();
    agent::Loop loop(services, options_.batch == agent::kUnlimited ? nullptr : &batch_);
    const std::string session = task.id + "#" + std::to_string(candidate.sample);
    auto result = loop.run(agent_task(benchmark_, task), options, stop, [&](const agent::Stamped& event) {
      if (options_.on_event) options_.on_event(session, event);
    });
    if (!result) return tl::unexpected(task.id + ": " + result.error().detail);
    if (result->end.outcome == agent::Outcome::failed) return tl::unexpected(task.id + ": the session failed: " + result->end.detail);
    return answer_of(task, *result);
  }

 private:
  static Answer answer_of(const Task& task, const agent::Result& result) {
    Answer out;
    out.ended = to_string(result.end.outcome);
    out.program = assemble_answer(task, result.program);
    for (const agent::Round& round : result.progress.attempts) {
      if (result.end.best && *result.end.best == round.attempt) out.best = out.attempts.size();
      out.attempts.push_back(attempt_of(round));
      out.programs.push_back(assemble_answer(task, round.program));
    }
    return out;
  }

  const Benchmark& benchmark_;
  agent::Services services_;
  std::unique_ptr<agent::Checker> contest_checker_;
  ModelSourceOptions options_;
  agent::Budget batch_;
  std::vector<Candidate> candidates_;
};

}  // namespace

agent::Task agent_task(const Benchmark& /*benchmark*/, const Task& task) {
  agent::Task out;
  out.id = task.id;
  out.statement = statement_of(task);
  out.language = task.language;
  out.entry_point = task.entry_point;
  if (task.shown_tests) out.shown_tests = *task.shown_tests;
  if (const Asserts* asserts = std::get_if<Asserts>(&task.hidden)) out.setup = asserts->setup;
  for (const std::string& statement : task.visible_asserts) out.visible.push_back({agent::Assertion{statement}});
  for (const StdioTest& test : task.visible_stdio) out.visible.push_back({agent::StdioCase{test.input, test.output}});
  for (const JsonCalls::Call& call : task.visible_calls) out.visible.push_back({agent::Assertion{assertion_of(task, call)}});
  if (out.visible.empty() && task.language == "python") out.visible = agent::find_doctests(task.prompt);
  return out;
}

std::string model_source_sha256(const ModelSourceOptions& options, std::string_view prompt_id) {
  const agent::LoopOptions& loop = options.loop;
  std::string all = options.model_sha256 + '\n' + std::string(agent::kPromptVersion) + '\n' + std::string(prompt_id) + '\n' + to_string(loop.feedback);
  const auto add = [&all](const agent::Amounts& amounts) {
    all.append("\n").append(std::to_string(amounts.rounds)).append(" ").append(std::to_string(amounts.tokens));
    all.append(" ").append(std::to_string(amounts.wall.count())).append(" ").append(std::to_string(amounts.sandbox.count()));
  };
  add(loop.task);
  add(loop.round);
  for (const double value : {loop.temperature, loop.branch_temperature, loop.top_p}) all.append("\n").append(std::to_string(value));
  all.append("\n").append(std::to_string(loop.seed)).append(" ").append(std::to_string(loop.drafts)).append(loop.own_tests ? " own tests" : "");
  for (const agent::Rung& rung : loop.ladder) all.append("\n").append(to_string(rung.kind)).append(" ").append(std::to_string(rung.attempts));
  return detail::sha256_hex(all);
}

std::unique_ptr<Source> make_model_source(const Benchmark& benchmark, const std::vector<std::size_t>& tasks, agent::Services services,
                                          ModelSourceOptions options) {
  return std::make_unique<ModelSource>(benchmark, tasks, services, std::move(options));
}

}  // namespace fixpoint::evals
