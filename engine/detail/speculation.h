#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "engine/draft_length.h"
#include "engine/drafter.h"
#include "engine/engine.h"
#include "engine/scheduler.h"

namespace fixpoint::engine::detail {

/// One sample's drafts. Without a drafter it has none.
struct SampleDrafts {
  std::unique_ptr<Drafter> drafter;
  SampleAcceptance acceptance;
  Draft draft;        // of the step at hand
  int verified = 0;   // tokens of it that the step computes
  int accepted_prediction_tokens = 0, rejected_prediction_tokens = 0;
};

/// Adds drafts to steps, and learns from what became of them. Whether they were right is for the sampler to say: this
/// decides how much is tried, never what comes out. So a drafter that throws is dropped, and its sample goes on without
/// drafts. Owned by the engine's thread.
class Speculator {
 public:
  Speculator(const EngineOptions& options, const Tokenizer& tokenizer);

  [[nodiscard]] bool on() const { return options_.speculation != Speculation::off; }
  [[nodiscard]] SampleDrafts begin(const Request& request) const;
  /// Adds drafts to the plan. `of_chunk`: [plan.chunks].
  void extend(Scheduler& scheduler, const StepPlan& plan, std::span<SampleDrafts* const> of_chunk);
  /// The tokens that the step gave a sample, the stop token included.
  void learn(SampleDrafts& drafts, std::span<const TokenId> tokens);
  /// The step that was extended last had `tokens` tokens, drafts included, and took so long.
  void record_step(int tokens, std::chrono::nanoseconds time);

  [[nodiscard]] const std::array<DraftCounts, num_draft_sources>& counts() const { return counts_; }

 private:
  void read_prompts(const StepPlan& plan, std::span<SampleDrafts* const> of_chunk);
  [[nodiscard]] Draft propose(SampleDrafts& drafts, std::span<const TokenId> text, int room, int& to_read) const;
  void ask(const StepPlan& plan, std::span<SampleDrafts* const> of_chunk, const DraftLength::Step& step);
  [[nodiscard]] std::span<const int> lengths(const DraftLength::Step& step);

  const EngineOptions options_;
  const std::int64_t vocab_size_;
  std::vector<bool> line_ends_;  // [vocab_size]
  DraftLength length_;
  std::array<DraftCounts, num_draft_sources> counts_{};
  std::vector<DraftLength::Candidate> candidates_;  // of the step at hand …
  std::vector<std::size_t> chunks_;                 // … and their chunks
  bool prefills_ = false;                           // … and whether it computes prompts, too
  std::vector<int> whole_;
};

}  // namespace fixpoint::engine::detail
