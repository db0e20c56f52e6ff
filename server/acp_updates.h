#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "agent/progress.h"
#include "server/session_store.h"
#include "server/update.h"

namespace fixpoint::server {

/// Turns the events of one turn into session updates: a fold, so that the same events give the same updates with the same
/// numbers, live or from the journal. One thread at a time.
class Projection {
 public:
  /// `number`: of the turn within its conversation, from 1. `last_seq`: of the updates before it.
  Projection(const TurnRecord& turn, int number, std::string cwd, std::int64_t last_seq);

  [[nodiscard]] std::vector<SharedUpdate> apply(const agent::Stamped& stamped);

  [[nodiscard]] std::int64_t last_seq() const { return last_seq_; }
  [[nodiscard]] std::int64_t last_event() const { return last_event_; }
  [[nodiscard]] const agent::Progress& progress() const { return progress_; }
  /// Of the best attempt; empty where there is none.
  [[nodiscard]] std::string best_program() const;
  [[nodiscard]] std::string file() const;

 private:
  struct PlanEntry {
    std::string text;
    const char* status = "pending";
  };

  void on(const agent::SessionStarted& event);
  void on(const agent::RoundStarted& event);
  void on(const agent::GenerationStarted& event);
  void on(const agent::TextDelta& event);
  void on(const agent::Generated& event);
  void on(const agent::GenerationFailed& event);
  void on(const agent::Explained& event);
  void on(const agent::ProgramWritten& event);
  void on(const agent::TestsWritten& event);
  void on(const agent::CheckStarted& event);
  void on(const agent::Checked& event);
  void on(const agent::CheckFailed& event);
  void on(const agent::Stuck& event);
  void on(const agent::Climbed& event);
  void on(const agent::Scored& event);
  void on(const agent::Ended& event);
  void on(const agent::Resumed& event);
  void on(const agent::HintGiven& event);
  void on(const agent::ProgramSubmitted& event);
  void on(const agent::Declined& event);

  void text(const char* kind, const std::string& message, std::string text, bool echo = false);
  void body(std::string json);
  void note(const std::string& words);  // a line of the agent's own, as a thought
  void plan();
  void begin_phase(std::string words);
  void end_phases();
  void close_run(const char* status, const std::string& detail);
  [[nodiscard]] std::string id(const std::string& what) const;
  [[nodiscard]] std::string message_of(int attempt) const;

  TurnRecord turn_;
  int number_;
  std::string cwd_;
  std::int64_t last_seq_;
  std::int64_t last_event_ = 0;
  std::chrono::steady_clock::time_point made_{};  ///< the event that is applied
  agent::Progress progress_;
  std::vector<SharedUpdate> out_;

  std::vector<PlanEntry> plan_;
  int runs_ = 0;
  std::string open_run_;        ///< the tool call that is under way
  std::set<int> streamed_;      ///< attempts whose text was sent as it came
  int tries_ = 0;               ///< interruptions so far: text begun anew is another message
  int notes_ = 0;
};

}  // namespace fixpoint::server
