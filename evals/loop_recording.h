#pragma once

#include <map>
#include <mutex>
#include <string>

#include "agent/event.h"
#include "evals/loop_workload.h"

namespace fixpoint::evals {

/// Turns sessions of the loop, as they run, into a workload that asks the same again: each attempt's question and answer, its
/// tokens, and the time until the next question. A draft begins a conversation; a repair goes on with the conversation whose
/// last answer it repairs. What does neither (a second repair of the same answer, a prompt without the whole history) and
/// what failed is left out. Thread-safe.
class LoopRecorder {
 public:
  /// Events of a session in their order; TextDelta may be left out.
  void take(const std::string& session, const agent::Stamped& event);
  /// Conversations in the order of their sessions' names.
  [[nodiscard]] LoopWorkload workload() const;

 private:
  struct Written {
    agent::Ask ask;
    std::string text;
    std::int64_t tokens = 0;
    std::chrono::steady_clock::time_point asked, answered;
    bool finished = false;
  };
  [[nodiscard]] static std::vector<LoopSession> conversations_of(const std::string& session, const std::map<int, Written>& attempts);

  mutable std::mutex mutex_;
  std::map<std::string, std::map<int, Written>> sessions_;  // guarded by mutex_; by attempt
};

}  // namespace fixpoint::evals
