#include "agent/handover.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/detail/fences.h"
#include "agent/detail/task_json.h"
#include "agent/detail/utf8.h"
#include "agent/diff.h"
#include "agent/prompt.h"

namespace fixpoint::agent {
namespace {

using Json = nlohmann::json;

/// The attempt that an attempt is shown as a change of: its parent, or else the one before it.
const Round* predecessor(const Progress& progress, const Round& attempt) {
  std::optional<int> id = attempt.ask.parent;
  while (id) {
    const Round& parent = progress.attempts[static_cast<std::size_t>(*id)];
    if (!parent.program.empty()) return &parent;
    id = parent.ask.parent;
  }
  return nullptr;
}

std::string changes(const Progress& progress, const Round& attempt) {
  const Round* before = predecessor(progress, attempt);
  return before == nullptr ? std::string() : to_text(diff_lines(before->program, attempt.program));
}

std::string verdict_line(const Round& attempt) {
  if (attempt.error) return "no answer: " + attempt.error_detail;
  if (!attempt.judgement) return attempt.program.empty() ? "no program" : "not run";
  std::string line(to_string(attempt.judgement->status));
  if (attempt.judgement->total > 0) {
    line += ", " + std::to_string(attempt.judgement->passed) + " of " + std::to_string(attempt.judgement->total) + " tests passed";
  }
  return line;
}

std::string failure_text(const FailedTest& failure) {
  std::string text = failure.test.empty() ? "input:\n" + failure.input : failure.test;
  if (!failure.expected.empty()) text += "\nexpected " + failure.expected;
  if (!failure.actual.empty()) text += "\ngot " + failure.actual;
  if (!failure.difference.empty()) text += "\ndifference: " + failure.difference;
  if (!failure.error.empty()) text += "\nraised " + failure.error;
  return text;
}

std::string block(std::string_view info, std::string_view content) { return detail::fenced(info, content) + "\n"; }

Json amounts(const Amounts& it) {
  return {{"rounds", it.rounds}, {"tokens", it.tokens}, {"wall_ms", it.wall.count()}, {"sandbox_ms", it.sandbox.count()}};
}

constexpr std::size_t kShownBytes = 2'000;
constexpr std::size_t kShownTests = 50;

/// The given tests and files, which the statement does not hold any more.
std::string tests_text(const Task& task) {
  std::string code, text;
  const std::size_t shown = std::min(task.visible.size(), kShownTests);
  for (std::size_t i = 0; i < shown; ++i) {
    const TestBody& body = task.visible[i].body;
    if (const auto* assertion = std::get_if<Assertion>(&body)) {
      code += bounded(assertion->code, kShownBytes) + "\n";
    } else if (const auto* stdio = std::get_if<StdioCase>(&body)) {
      text += "Input:\n" + block("", bounded(stdio->input, kShownBytes)) + "Output:\n" + block("", bounded(stdio->output, kShownBytes));
    } else if (const auto* check = std::get_if<CheckFunction>(&body)) {
      text += block(task.language, bounded(check->code, 4 * kShownBytes));
    } else {
      const auto& file = std::get<TestFile>(body);
      text += "`" + file.name + "`:\n" + block(task.language, bounded(file.content, 4 * kShownBytes));
    }
  }
  if (!code.empty()) text = block(task.language, (task.setup.empty() ? "" : task.setup + "\n") + code) + text;
  if (task.visible.size() > shown) text += "… and " + std::to_string(task.visible.size() - shown) + " more.\n";
  if (!text.empty()) text = "## The tests\n\n" + text + "\n";
  for (const ContextFile& file : task.context) text += "File `" + file.path + "`:\n" + block("", bounded(file.content, kShownBytes)) + "\n";
  return text;
}

/// What the judge saw beside the verdict: a message, what was printed, the trace.
std::string evidence(const Round& attempt) {
  if (!attempt.judgement || attempt.passed()) return {};
  const Judgement& judgement = *attempt.judgement;
  std::string text;
  if (!judgement.failures.empty()) text += failure_text(judgement.failures.front()) + "\n";
  if (judgement.failures.empty() && !judgement.message.empty()) text += bounded(judgement.message, kShownBytes) + "\n";
  if (!judgement.output.empty()) text += "printed:\n" + bounded(judgement.output, kShownBytes) + "\n";
  for (const TraceLine& line : judgement.trace) {
    text += "line " + std::to_string(line.line) + ": " + line.source + (line.effect.empty() ? "" : "  # " + line.effect) + "\n";
  }
  return text.empty() ? text : block("", text) + "\n";
}

/// The statement; without its first line where that is a heading that says the same as `heading`.
std::string_view below_heading(std::string_view statement, std::string_view heading) {
  statement = detail::trimmed(statement);
  const std::size_t end = std::min(statement.find('\n'), statement.size());
  std::string_view first = statement.substr(0, end);
  if (!first.starts_with('#')) return statement;
  while (first.starts_with('#')) first.remove_prefix(1);
  return detail::trimmed(first) == heading ? detail::trimmed(statement.substr(end)) : statement;
}

}  // namespace

const FailedTest* smallest_failure(const Progress& progress) {
  const Round* best = progress.best();
  if (best == nullptr || !best->judgement) return nullptr;
  const FailedTest* smallest = nullptr;
  for (const FailedTest& failure : best->judgement->failures) {
    const std::size_t size = failure.test.size() + failure.input.size();
    if (smallest == nullptr || size < smallest->test.size() + smallest->input.size()) smallest = &failure;
  }
  return smallest;
}

std::string handover_markdown(const Progress& progress) {
  const std::string heading = title(progress.task);
  std::string text = "# " + heading + "\n\n";
  if (progress.end) {
    text += progress.end->outcome == Outcome::handed_over ? "Handed over: " : "Ended: ";
    text += progress.end->detail + ".\n\n";
  }
  text += std::string(below_heading(progress.task.statement, heading)) + "\n\n";
  text += "Language: " + language_title(progress.task.language);
  if (!progress.task.entry_point.empty()) text += ". Function: `" + progress.task.entry_point + "`";
  text += ".\n\n" + tests_text(progress.task);
  if (const Round* best = progress.best()) {
    text += "## The best program (attempt " + std::to_string(best->attempt) + ": " + verdict_line(*best) + ")\n\n";
    text += block(progress.task.language, best->program) + "\n";
  }
  if (const FailedTest* failure = smallest_failure(progress)) {
    text += "## The smallest failing test\n\n" + block("", failure_text(*failure)) + "\n";
  }
  text += "## The rounds\n\n";
  for (const Round& attempt : progress.attempts) {
    if (attempt.ask.purpose == Purpose::own_tests) continue;
    text += "### Round " + std::to_string(attempt.number) + ", attempt " + std::to_string(attempt.attempt) + " (" +
            std::string(to_string(attempt.ask.purpose)) + " by the " + std::string(to_string(attempt.ask.writer)) +
            "): " + verdict_line(attempt) + "\n\n";
    if (!attempt.explanation.empty()) text += attempt.explanation + "\n\n";
    const std::string change = changes(progress, attempt);
    if (!change.empty()) {
      text += block("diff", change) + "\n";
    } else if (!attempt.program.empty() && predecessor(progress, attempt) == nullptr) {
      text += block(progress.task.language, attempt.program) + "\n";
    }
    text += evidence(attempt);
  }
  text += "Spent: " + std::to_string(progress.spent.rounds) + " rounds, " + std::to_string(progress.spent.tokens) + " tokens, " +
          std::to_string(progress.spent.wall.count()) + " ms, of which " + std::to_string(progress.spent.sandbox.count()) +
          " ms in the sandbox.\n";
  return text;
}

std::string handover_json(const Progress& progress) {
  Json rounds = Json::array();
  for (const Round& attempt : progress.attempts) {
    Json round{{"attempt", attempt.attempt},
               {"round", attempt.number},
               {"purpose", to_string(attempt.ask.purpose)},
               {"writer", to_string(attempt.ask.writer)},
               {"program", attempt.program},
               {"explanation", attempt.explanation},
               {"verdict", verdict_line(attempt)},
               {"diff", changes(progress, attempt)}};
    if (attempt.ask.parent) round["parent"] = *attempt.ask.parent;
    rounds.push_back(std::move(round));
  }
  Json json{{"task", detail::task_to_json(progress.task)}, {"rounds", std::move(rounds)}, {"spent", amounts(progress.spent)}};
  if (progress.end) json["reason"] = progress.end->detail;
  if (const Round* best = progress.best()) json["best"] = {{"attempt", best->attempt}, {"program", best->program}};
  if (const FailedTest* failure = smallest_failure(progress)) json["smallest_failing_test"] = failure_text(*failure);
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fixpoint::agent
