#include "evals/judge.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "evals/detail/bash_calls.h"
#include "evals/detail/contest_output.h"
#include "evals/detail/output_folder.h"
#include "evals/detail/plus_oracle.h"
#include "evals/detail/task_checks.h"
#include "sandbox/check.h"

namespace fixpoint::evals {
namespace {

using sandbox::CheckOptions;
using sandbox::CheckResult;
using sandbox::TestOutcome;

constexpr std::array<std::pair<Outcome, std::string_view>, 10> kOutcomeNames{{
    {Outcome::passed, "passed"}, {Outcome::wrong_answer, "wrong_answer"}, {Outcome::exception, "exception"}, {Outcome::crashed, "crashed"},
    {Outcome::time_limit, "time_limit"}, {Outcome::memory_limit, "memory_limit"}, {Outcome::other_limit, "other_limit"},
    {Outcome::forbidden, "forbidden"}, {Outcome::compile_error, "compile_error"}, {Outcome::not_judged, "not_judged"},
}};

Judgement not_judged(std::string message) {
  Judgement out;
  out.message = std::move(message);
  return out;
}

std::chrono::milliseconds milliseconds(double seconds) { return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000)); }

/// How a run ended, where that is not the program's own doing in a test.
Outcome outcome_of(const sandbox::Outcome& outcome) {
  const std::string_view name = sandbox::name(outcome);
  if (name == "cpu_limit" || name == "wall_limit") return Outcome::time_limit;
  if (name == "memory_limit") return Outcome::memory_limit;
  if (name == "syscall_denied") return Outcome::forbidden;
  if (name == "compile_error") return Outcome::compile_error;
  if (name == "setup_error" || name == "internal_error" || name == "cancelled") return Outcome::not_judged;
  if (name.ends_with("_limit")) return Outcome::other_limit;
  return Outcome::crashed;
}

Outcome outcome_of(const CheckResult& result, const sandbox::TestResult& failure) {
  switch (failure.outcome) {
    case TestOutcome::wrong: return Outcome::wrong_answer;
    case TestOutcome::raised: return Outcome::exception;
    case TestOutcome::limit: {
      const Outcome how = result.verdicts.empty() ? Outcome::time_limit : outcome_of(result.verdicts.back().outcome);
      // A call that took too long ends with the judge's own stop.
      return how == Outcome::crashed || how == Outcome::not_judged ? Outcome::time_limit : how;
    }
    case TestOutcome::crashed: {
      const Outcome how = result.verdicts.empty() ? Outcome::crashed : outcome_of(result.verdicts.back().outcome);
      return how == Outcome::not_judged ? Outcome::crashed : how;
    }
    case TestOutcome::passed:
    case TestOutcome::not_run: break;
  }
  return Outcome::crashed;
}

Judgement judgement_of(const CheckResult& result) {
  Judgement out;
  out.tests = static_cast<int>(result.tests.size());
  out.tests_passed = static_cast<int>(result.passed_tests());
  out.level = name(result.level);
  out.cpu = result.cpu;
  out.wall = result.wall;
  if (!result.error.empty()) {
    out.message = result.error;
    return out;
  }
  if (result.passed) {
    out.outcome = Outcome::passed;
    return out;
  }
  const sandbox::TestResult* failure = result.first_failure();
  if (failure == nullptr) return not_judged("no test failed, and the check did not pass");
  out.outcome = outcome_of(result, *failure);
  out.failed_test = failure->test;
  out.expected = failure->expected;
  out.got = failure->got;
  out.message = failure->message;
  return out;
}

/// Where a check calls a wrapper of the program's function, or expects a value with what its comparison needs around it: the
/// failure in the task's own words. `check` stops at its first failure; `wanted` is the value's place in what is expected.
Judgement in_own_words(Judgement judgement, const Task& task, const sandbox::CallCheck& check, std::size_t wanted, std::size_t max_text_bytes) {
  if (judgement.failed_test.starts_with(check.entry_point + '(')) judgement.failed_test.replace(0, check.entry_point.size(), task.entry_point);
  const auto failed = static_cast<std::size_t>(judgement.tests_passed);
  if (judgement.expected.empty() || failed >= check.tests.size()) return judgement;
  const auto& expected = std::get<sandbox::Value>(check.tests[failed].expected);
  if (wanted < expected.items.size()) judgement.expected = to_text(expected.items[wanted], max_text_bytes);
  return judgement;
}

/// Base and plus tests as one: "plus" passes only with both.
Judgement joined(const Judgement& base, const Judgement& plus) {
  Judgement out = base.passed() ? plus : base;
  out.base_passed = base.passed();
  out.tests = base.tests + plus.tests;
  out.tests_passed = base.tests_passed + plus.tests_passed;
  out.cpu = base.cpu + plus.cpu;
  out.wall = base.wall + plus.wall;
  return out;
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  return std::find_if(kOutcomeNames.begin(), kOutcomeNames.end(), [&](const auto& entry) { return entry.first == outcome; })->second;
}

std::optional<Outcome> parse_outcome(std::string_view text) {
  const auto found = std::find_if(kOutcomeNames.begin(), kOutcomeNames.end(), [&](const auto& entry) { return entry.second == text; });
  if (found == kOutcomeNames.end()) return std::nullopt;
  return found->first;
}

namespace {

std::string interpreter(const sandbox::Sandbox& sandbox) {
  const sandbox::Toolchain* python = sandbox.toolchains().find(sandbox::Language::python);
  return python != nullptr ? python->version : std::string();
}

}  // namespace

class Judge::Impl {
 public:
  Impl(sandbox::Sandbox& sandbox, const Benchmark& benchmark, JudgeOptions options)
      : sandbox_(sandbox), benchmark_(benchmark), options_(std::move(options)), prepared_(benchmark.tasks.size()) {
    if (!options_.outputs.empty()) outputs_.emplace(options_.outputs, interpreter(sandbox));
  }

  Judgement judge(std::size_t index, const Program& program, std::stop_token stop) {
    const Task& task = benchmark_.tasks[index];
    if (!sandbox::parse_language(task.language)) return not_judged("there is no sandbox for " + task.language);
    return std::visit([&](const auto& tests) { return judge_tests(index, program, tests, stop); }, task.hidden);
  }

  std::optional<Judgement> judge_visible(std::size_t index, const Program& program, std::stop_token stop) {
    const Task& task = benchmark_.tasks[index];
    if (!task.visible_asserts.empty()) {
      const Asserts* hidden = std::get_if<Asserts>(&task.hidden);
      return judge_tests(index, program, Asserts{hidden != nullptr ? hidden->setup : "", task.visible_asserts}, stop);
    }
    if (!task.visible_stdio.empty()) return judge_tests(index, program, Stdio{task.visible_stdio}, stop);
    if (!task.visible_calls.empty()) return judge_tests(index, program, JsonCalls{task.visible_calls}, stop);
    return std::nullopt;
  }

 private:
  struct Prepared {
    std::mutex mutex;
    std::optional<detail::DifferentialChecks> checks;  // never changes once it is there
  };

  sandbox::Limits limits_of(const Task& task) const {
    sandbox::Limits limits;
    const double cpu = options_.cpu_seconds.value_or(task.cpu_seconds);
    limits.cpu = milliseconds(cpu);
    limits.wall = milliseconds(cpu * 6 + 10);
    limits.memory_bytes = options_.memory_bytes;
    return limits;
  }

  CheckOptions options_for(const Task& task) const {
    const sandbox::Limits limits = limits_of(task);
    return {.limits = limits, .call_wall = limits.wall, .stop_at_first_failure = true, .max_text_bytes = 1000};
  }

  sandbox::Program sandbox_program(const Task& task, std::string source) const { return {*sandbox::parse_language(task.language), std::move(source)}; }

  template <typename TextTests>
  Judgement judge_text(const Task& task, const Program& program, const TextTests& tests, std::stop_token stop) {
    return judgement_of(sandbox::check(sandbox_, sandbox_program(task, program.source), detail::text_check(task, tests), options_for(task), stop));
  }
  Judgement judge_tests(std::size_t index, const Program& program, const CheckFunction& tests, std::stop_token stop) {
    return judge_text(benchmark_.tasks[index], program, tests, stop);
  }
  Judgement judge_tests(std::size_t index, const Program& program, const Asserts& tests, std::stop_token stop) {
    const Task& task = benchmark_.tasks[index];
    return judge_text(task, {program.source + detail::truth_wrapper(task, tests), program.closed}, tests, stop);
  }

  Judgement judge_tests(std::size_t index, const Program& program, const Differential& tests, std::stop_token stop) {
    const Task& task = benchmark_.tasks[index];
    Prepared& prepared = prepared_[index];
    {
      // One program waits for another's; a canonical solution that a busy machine did not let finish may be asked again.
      const std::scoped_lock lock(prepared.mutex);
      if (!prepared.checks) {
        auto outputs = canonical_outputs(task, tests, stop);
        if (!outputs) return not_judged(outputs.error());
        prepared.checks = detail::differential_checks(task, tests, *std::move(outputs));
      }
    }
    CheckOptions options = options_for(task);
    // Each call: 4 s, or four times the canonical solution's; half as much again where the machine is busy.
    const auto call = std::max<std::chrono::milliseconds>(std::chrono::seconds(4), 4 * prepared.checks->wall);
    options.call_wall = std::min(call + call / 2, options.call_wall);
    std::string source = program.source;
    (void)detail::called_name(task, {tests.oracle, false, prepared.checks->digests}, source);
    const sandbox::Program runnable = sandbox_program(task, std::move(source));
    const auto judge_calls = [&](const sandbox::CallCheck& check) {
      return in_own_words(judgement_of(sandbox::check(sandbox_, runnable, check, options, stop)), task, check, detail::kPackedValue, options.max_text_bytes);
    };
    const Judgement base = judge_calls(prepared.checks->base);
    Judgement plus;
    plus.tests = static_cast<int>(prepared.checks->plus.tests.size());
    if (prepared.checks->plus.tests.empty()) plus.outcome = Outcome::passed, plus.level = base.level;
    if (base.passed() && !prepared.checks->plus.tests.empty()) plus = judge_calls(prepared.checks->plus);
    return joined(base, plus);
  }

  tl::expected<detail::CanonicalOutputs, std::string> canonical_outputs(const Task& task, const Differential& tests, std::stop_token stop) {
    if (outputs_) {
      if (auto kept = outputs_->find(task, tests)) return *std::move(kept);
    }
    auto outputs = detail::canonical_outputs(sandbox_, task, tests, limits_of(task), stop);
    if (outputs && outputs_) (void)outputs_->keep(task, tests, *outputs);  // else they are computed again the next time
    return outputs;
  }

  Judgement judge_tests(std::size_t index, const Program& program, const ProgramTail& tests, std::stop_token stop) {
    const Task& task = benchmark_.tasks[index];
    if (task.language == "bash") {
      if (const auto calls = detail::parse_bash_tests(tests.source)) return judge_bash(task, program, *calls, stop);
    }
    // A tail that begins by closing the function: the brace belongs to the program.
    Program whole = program;
    std::string tail = tests.source;
    if (const std::size_t first = tail.find_first_not_of(" \t\r\n"); first != std::string::npos && tail[first] == '}') {
      if (!whole.closed) whole.source += "\n}";
      tail.erase(0, first + 1);
    }
    const sandbox::TextCheck check{.tests = std::move(tail), .entry_point = task.entry_point, .probe = false};
    return judgement_of(sandbox::check(sandbox_, sandbox_program(task, std::move(whole.source)), check, options_for(task), stop));
  }

  /// One process a call; what it printed, without the newlines at its end, is compared here. Its exit status does not
  /// count, as in $(…).
  Judgement judge_bash(const Task& task, const Program& program, const detail::BashTests& tests, std::stop_token stop) {
    Judgement out;
    out.level = "printed_output";
    out.tests = static_cast<int>(tests.calls.size());
    sandbox::Job job{.language = sandbox::Language::bash, .limits = limits_of(task)};
    for (const detail::BashCall& call : tests.calls) {
      job.source = program.source + (program.closed ? "\n" : "\n}\n") + "candidate() {\n    " + tests.function + " \"$@\"\n}\n" + call.command + "\n";
      const sandbox::Verdict verdict = sandbox_.run(job, stop);
      out.cpu += verdict.usage.cpu;
      out.wall += verdict.usage.wall;
      out.failed_test = call.command;
      if (!verdict.ok() && !std::holds_alternative<sandbox::ExitNonzero>(verdict.outcome)) {
        out.outcome = outcome_of(verdict.outcome);
        out.message = describe(verdict.outcome);
        return out;
      }
      std::string got = verdict.standard_output.bytes;
      std::erase(got, '\0');
      while (got.ends_with('\n')) got.pop_back();
      const auto expected = detail::unquote_bash(call.expected);
      if (!expected) return not_judged("the test " + call.expected + " is not plain text");
      if (got == *expected) {
        ++out.tests_passed;
        continue;
      }
      out.outcome = Outcome::wrong_answer;
      out.expected = *expected;
      out.got = got.substr(0, 1000);
      out.message = verdict.standard_error.bytes.substr(0, 1000);
      return out;
    }
    out.failed_test.clear();
    out.outcome = Outcome::passed;
    return out;
  }

  Judgement judge_tests(std::size_t index, const Program& program, const Stdio& tests, std::stop_token stop) {
    const Task& task = benchmark_.tasks[index];
    Judgement out;
    out.level = "printed_output";
    out.tests = static_cast<int>(tests.tests.size());
    sandbox::Job job{.language = *sandbox::parse_language(task.language), .source = program.source, .limits = limits_of(task)};
    if (task.language == "python") job.source = detail::contest_source(program.source, {});
    job.limits.output_bytes = std::uint64_t{64} << 20;
    for (const StdioTest& test : tests.tests) {
      job.input = test.input;
      const sandbox::Verdict verdict = sandbox_.run(job, stop);
      out.cpu += verdict.usage.cpu + verdict.compile_usage.cpu;
      out.wall += verdict.usage.wall + verdict.compile_usage.wall;
      if (!verdict.ok()) {
        const bool raised = std::holds_alternative<sandbox::ExitNonzero>(verdict.outcome);
        out.outcome = raised ? Outcome::exception : outcome_of(verdict.outcome);
        const std::string& errors = verdict.standard_error.bytes;
        out.message = describe(verdict.outcome) + (errors.empty() ? "" : "\n" + errors.substr(errors.size() - std::min<std::size_t>(errors.size(), 1000)));
      } else if (const std::string difference = detail::output_difference(verdict.standard_output.bytes, test.output); !difference.empty()) {
        out.outcome = Outcome::wrong_answer;
        out.message = difference;
        out.got = verdict.standard_output.bytes.substr(0, 1000);
        out.expected = test.output.substr(0, 1000);
      } else {
        ++out.tests_passed;
        continue;
      }
      out.failed_test = test.input.substr(0, 1000);
      return out;
    }
    out.outcome = Outcome::passed;
    return out;
  }

  Judgement judge_tests(std::size_t index, const Program& program, const JsonCalls& tests, std::stop_token stop) {
    const Task& task = benchmark_.tasks[index];
    std::string source = program.source;
    const sandbox::CallCheck check = detail::json_call_check(task, tests, source);
    CheckOptions options = options_for(task);
    options.call_wall = milliseconds(options_.cpu_seconds.value_or(task.cpu_seconds) * 1.5);
    options.limits.cpu = (options.limits.cpu + std::chrono::seconds(1)) * static_cast<std::int64_t>(tests.calls.size());
    options.limits.wall = options.limits.cpu * 3;
    const auto result = sandbox::check(sandbox_, sandbox_program(task, std::move(source)), check, options, stop);
    return in_own_words(judgement_of(result), task, check, 0, options.max_text_bytes);
  }

  sandbox::Sandbox& sandbox_;
  const Benchmark& benchmark_;
  const JudgeOptions options_;
  std::vector<Prepared> prepared_;
  std::optional<detail::OutputFolder> outputs_;
};

Judge::Judge(sandbox::Sandbox& sandbox, const Benchmark& benchmark, JudgeOptions options)
    : impl_(std::make_unique<Impl>(sandbox, benchmark, options)) {}
Judge::~Judge() = default;

Judgement Judge::judge(std::size_t task, const Program& program, std::stop_token stop) { return impl_->judge(task, program, stop); }

std::optional<Judgement> Judge::judge_visible(std::size_t task, const Program& program, std::stop_token stop) {
  return impl_->judge_visible(task, program, stop);
}

}  // namespace fixpoint::evals
