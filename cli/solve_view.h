#pragma once

#include <string>

#include "agent/loop.h"

namespace fixpoint::cli {

/// A session on a terminal as it happens: the rounds, the program as it is written, the verdict with the failing test, the
/// explanation, what changed from program to program, and what each round cost.
class SolveView {
 public:
  explicit SolveView(bool colours) : colours_(colours) {}
  void show(const agent::Stamped& stamped);
  /// What was shown before, or elsewhere: a session that goes on announces only what is new.
  void recall(const std::vector<agent::Stamped>& events);
  /// The best program so far, in one line: what it is the best of.
  [[nodiscard]] std::string best_so_far() const;

 private:
  void show(const agent::SessionStarted& event);
  void show(const agent::RoundStarted& event);
  void show(const agent::GenerationStarted& event);
  void show(const agent::TextDelta& event);
  void show(const agent::Generated& event);
  void show(const agent::GenerationFailed& event);
  void show(const agent::ProgramWritten& event);
  void show(const agent::Checked& event);
  void show(const agent::CheckFailed& event);
  void show(const agent::Stuck& event);
  void show(const agent::Climbed& event);
  void show(const agent::Scored& event);
  void show(const agent::Ended& event);
  void show(const agent::Resumed& event);
  void show(const agent::HintGiven& event);
  void show(const agent::ProgramSubmitted& event);
  template <class E>
  void show(const E&) {}

  void line(const char* colour, const std::string& text);
  void end_line();
  [[nodiscard]] const char* code(const char* colour) const { return colours_ && colour != nullptr ? colour : ""; }

  bool colours_;
  bool in_line_ = false;
  agent::Progress progress_;
};

/// The session's rounds again, from its record.
void show_session(const std::vector<agent::Stamped>& events, bool colours);

/// How a turn ended, in one line for people.
[[nodiscard]] std::string summary(const agent::Ended& end);

/// Runs or resumes a session with the view that fits stdout (terminal, pipe, JSON lines). The exit code.
struct ShowOptions {
  bool json = false;
  std::vector<agent::Stamped> before;  ///< of a session that goes on: its record
  std::string resume_with;             ///< the options that a resumption needs, as typed: " -m FILE"
  std::string show_with;               ///< those that a look at its record needs: " --journal FILE"
};
using RunSession = std::function<tl::expected<agent::Result, agent::LoopError>(std::stop_token, const agent::OnEvent&)>;
[[nodiscard]] int run_session(const RunSession& run, const ShowOptions& options);

}  // namespace fixpoint::cli
