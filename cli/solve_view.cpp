#include "cli/solve_view.h"

#include <cstdio>

#include "agent/diff.h"
#include "cli/agent_workers.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace fixpoint::cli {
namespace {

constexpr const char* kBold = "\033[1m";
constexpr const char* kDim = "\033[2m";
constexpr const char* kRed = "\033[31m";
constexpr const char* kGreen = "\033[32m";
constexpr const char* kYellow = "\033[33m";
constexpr const char* kCyan = "\033[36m";
constexpr const char* kReset = "\033[0m";

std::string seconds(std::chrono::milliseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", static_cast<double>(time.count()) / 1000.0);
  return text;
}

std::string plural(std::int64_t count, const std::string& word) { return std::to_string(count) + " " + word + (count == 1 ? "" : "s"); }

std::string verdict_text(const agent::Judgement& judgement) {
  std::string text(to_string(judgement.status));
  for (char& c : text) c = c == '_' ? ' ' : c;
  if (judgement.total > 0) text += ": " + std::to_string(judgement.passed) + " of " + plural(judgement.total, "test") + " passed";
  return text;
}

std::string outcome_text(const agent::Ended& end) {
  std::string outcome(to_string(end.outcome));
  for (char& c : outcome) c = c == '_' ? ' ' : c;
  return outcome + ": " + end.detail;
}

}  // namespace

void SolveView::end_line() {
  if (in_line_) std::fputc('\n', stdout);
  in_line_ = false;
}

void SolveView::line(const char* colour, const std::string& text) {
  end_line();
  std::printf("%s%s%s\n", code(colour), printable(text).c_str(), colours_ ? kReset : "");
}

void SolveView::show(const agent::Stamped& stamped) {
  progress_.apply(stamped.event);
  std::visit([this](const auto& event) { show(event); }, stamped.event);
  std::fflush(stdout);
}

void SolveView::recall(const std::vector<agent::Stamped>& events) {
  for (const agent::Stamped& stamped : events) progress_.apply(stamped.event);
}

std::string SolveView::best_so_far() const {
  const agent::Round* best = progress_.best();
  if (best == nullptr) return {};
  std::string text = "best so far (attempt " + std::to_string(best->attempt);
  if (best->judgement) text += ", " + verdict_text(*best->judgement);
  return text + "):";
}

void SolveView::show(const agent::SessionStarted& event) {
  line(kDim, title(event.task) + " (" + event.task.language + ", " + plural(static_cast<std::int64_t>(event.task.visible.size()), "test") +
                 ") with " + event.model);
}

void SolveView::show(const agent::RoundStarted& event) {
  std::string text = event.number == 0 ? "first draft" : "round " + std::to_string(event.number) + ": " + std::string(to_string(event.purpose));
  if (event.drafts > 1) text = plural(event.drafts, "first draft");
  if (event.purpose == agent::Purpose::own_tests) text = "tests of its own";
  if (event.writer != agent::Writer::model) text += " by the " + std::string(to_string(event.writer));
  if (event.again) {
    text += ", once more";
  } else if (event.heated) {
    text += ", another branch";
  }
  line(kBold, "── " + text + " ──");
}

void SolveView::show(const agent::GenerationStarted& event) {
  if (event.draft > 0) return;
  end_line();
}

void SolveView::show(const agent::TextDelta& event) {
  // Of parallel drafts the first is shown as it is written.
  if (progress_.attempts[static_cast<std::size_t>(event.attempt)].draft > 0) return;
  const std::string text = printable(event.text);
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!text.empty()) in_line_ = text.back() != '\n';
}

void SolveView::show(const agent::Generated& event) {
  std::string text = plural(event.usage.completion_tokens, "token") + " written in " + seconds(event.cost.wall);
  if (event.usage.prompt_tokens > 0) {
    text += ", " + std::to_string(event.usage.cached_tokens) + " of " + std::to_string(event.usage.prompt_tokens) + " prompt tokens from cache";
  }
  line(kDim, text);
}

void SolveView::show(const agent::GenerationFailed& event) {
  if (event.kind != agent::GenerateError::Kind::cancelled) line(kRed, "no answer: " + event.detail);
}

void SolveView::show(const agent::ProgramWritten& event) {
  const agent::Round& attempt = progress_.attempts[static_cast<std::size_t>(event.attempt)];
  if (event.kind != agent::ExtractKind::fenced) line(kDim, "program found as: " + std::string(to_string(event.kind)));
  if (!attempt.ask.parent) return;
  const agent::Round& parent = progress_.attempts[static_cast<std::size_t>(*attempt.ask.parent)];
  for (const agent::DiffLine& it : agent::diff_lines(parent.program, event.program, 1)) {
    using Kind = agent::DiffLine::Kind;
    const char* colour = it.kind == Kind::added ? kGreen : it.kind == Kind::removed ? kRed : kDim;
    line(colour, (it.kind == Kind::added ? "  + " : it.kind == Kind::removed ? "  - " : it.kind == Kind::gap ? "  ..." : "    ") + it.text);
  }
}

void SolveView::show(const agent::Checked& event) {
  const agent::Judgement& judgement = event.judgement;
  const bool passed = judgement.status == agent::CheckStatus::passed;
  const std::string what = passed && judgement.total == 0 ? "it runs" : verdict_text(judgement);
  line(passed ? kGreen : kRed, (passed ? "✓ " : "✗ ") + what + " (sandbox " + seconds(judgement.sandbox) + ")");
  if (passed) return;
  if (judgement.failures.empty()) {
    if (!judgement.message.empty()) line(nullptr, judgement.message);
    return;
  }
  const agent::FailedTest& failed = judgement.failures.front();
  line(nullptr, "  " + (failed.test.empty() ? "input: " + failed.input : failed.test));
  if (!failed.expected.empty()) line(nullptr, "  expected " + failed.expected);
  if (!failed.error.empty()) {
    line(nullptr, "  raised " + failed.error);
  } else if (!failed.actual.empty()) {
    line(nullptr, "  got " + failed.actual);
    if (!failed.difference.empty()) line(nullptr, "  difference: " + failed.difference);
  }
}

void SolveView::show(const agent::CheckFailed& event) {
  if (event.kind != agent::CheckError::Kind::cancelled) line(kRed, "the program could not be checked: " + event.detail);
}

void SolveView::show(const agent::Stuck& event) {
  std::string reason(to_string(event.reason));
  for (char& c : reason) c = c == '_' ? ' ' : c;
  line(kYellow, "stuck: " + reason);
}

void SolveView::show(const agent::Climbed& event) {
  std::string text = "next: " + std::string(to_string(event.kind));
  if (event.grant.rounds > 0) text += ", granted " + plural(event.grant.rounds, "round");
  line(kYellow, text);
}

void SolveView::show(const agent::Scored& event) {
  line(event.judgement.status == agent::CheckStatus::passed ? kGreen : kRed, "hidden tests: " + verdict_text(event.judgement));
}

void SolveView::show(const agent::Ended& event) {
  line(event.outcome == agent::Outcome::solved ? kGreen : kYellow, summary(event));
  line(kDim, plural(event.spent.rounds, "repair round") + ", " + plural(event.spent.tokens, "token") + ", " + seconds(event.spent.wall) + " (sandbox " +
                 seconds(event.spent.sandbox) + "); " + std::to_string(event.usage.cached_tokens) + " of " +
                 std::to_string(event.usage.prompt_tokens) + " prompt tokens from cache");
}

void SolveView::show(const agent::Resumed&) { line(kCyan, "resumed"); }
void SolveView::show(const agent::HintGiven& event) { line(kCyan, "hint from " + event.by + ": " + event.text); }
void SolveView::show(const agent::ProgramSubmitted& event) { line(kCyan, "program from " + event.by); }

void show_session(const std::vector<agent::Stamped>& events, bool colours) {
  SolveView view(colours);
  for (const agent::Stamped& stamped : events) view.show(stamped);
}

std::string summary(const agent::Ended& end) {
  std::string text = outcome_text(end);
  if (end.outcome == agent::Outcome::handed_over) text += " (escalation " + end.escalation + ")";
  return text;
}

int run_session(const RunSession& run, const ShowOptions& options) {
  const bool terminal = stdout_is_terminal() && !options.json;
  SolveView view(colours_on_stdout());
  view.recall(options.before);
  const agent::OnEvent on_event = [&](const agent::Stamped& stamped) {
    if (options.json) {
      std::printf("%s\n", to_json(stamped).c_str());
      std::fflush(stdout);
    } else if (terminal) {
      view.show(stamped);
    }
  };
  const InterruptStop interrupt;
  const auto result = run(interrupt.token(), on_event);
  if (!result) return fail(result.error().detail);
  const agent::Ended& end = result->end;
  if (!options.json && !result->program.empty()) {
    if (terminal) std::printf("\n%s", end.outcome == agent::Outcome::solved ? "" : (view.best_so_far() + "\n\n").c_str());
    std::fwrite(result->program.data(), 1, result->program.size(), stdout);
    std::fflush(stdout);
  }
  const bool handed_over = end.outcome == agent::Outcome::handed_over;
  const bool tests_pass = end.outcome == agent::Outcome::solved && end.basis == agent::Basis::tests;
  if (!terminal && !tests_pass && !handed_over) std::fprintf(stderr, "fixpoint: %s\n", printable(outcome_text(end)).c_str());
  if (end.outcome == agent::Outcome::cancelled || end.outcome == agent::Outcome::failed) {
    std::fprintf(stderr, "fixpoint: goes on with: fixpoint sessions resume %s%s\n", result->session.c_str(), options.resume_with.c_str());
  }
  if (handed_over) {
    const std::string said = terminal ? std::string("what a person needs") : printable(outcome_text(end));
    std::fprintf(stderr, "fixpoint: %s: fixpoint escalations show %s%s\n", said.c_str(), end.escalation.c_str(), options.show_with.c_str());
    return kHandedOver;
  }
  return end.outcome == agent::Outcome::solved ? kSuccess : kFailure;
}

}  // namespace fixpoint::cli
