#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/detail/step_times.h"
#include "engine/drafter.h"

namespace fixpoint::engine {

/// How many draft tokens were right: verified ones and ones that were only compared with what the model wrote anyway.
class DraftAcceptance {
 public:
  /// Each token leaves `fading` of the weight of those before it.
  void record(int right, int wrong, double fading);
  /// Estimate that starts at `prior` and is worth as much as `prior_weight` tokens of evidence.
  [[nodiscard]] double rate(double prior, double prior_weight) const;

 private:
  double right_ = 0, wrong_ = 0;
};

/// One sample's record with each source.
using SampleAcceptance = std::array<DraftAcceptance, num_draft_sources>;

/// Says how many draft tokens are worth verifying. Knows what steps of which size took and how often drafts of which
/// source, with how long a match behind them, were right; maximises tokens a second for the step at hand, and says 0 where
/// that wouldn't gain `least_gain`. What it says changes how fast tokens come, never which. One thread.
class DraftLength {
 public:
  static constexpr double least_gain = 1.06;  ///< beyond what noise in the measurements makes up
  static constexpr int probe_interval = 512;  ///< steps without drafts after which a short one is tried, if one is likely

  /// A step before drafts are added.
  struct Step {
    int decoding = 0;    ///< sequences that get a token each
    int tokens = 0;      ///< all tokens: those and the prefill's
    int most_drafts = 0; ///< tokens that may be added
  };
  struct Candidate {
    DraftSource source = DraftSource::session_text;
    int matched = 0;
    int length = 0;      ///< of the draft that there is
    const SampleAcceptance* acceptance = nullptr;
  };

  /// Whether in such a step drafts that are almost always right would pay: if not, nobody needs to draft. True as well when
  /// it is time to try one again: a disturbance may have made the times what they are.
  [[nodiscard]] bool may_pay(const Step& step);
  /// Tokens to verify of each candidate's draft, in order. Valid until the next call.
  [[nodiscard]] std::span<const int> choose(const Step& step, std::span<const Candidate> candidates);

  /// What became of (part of) a draft.
  void record(SampleAcceptance& sample, DraftSource source, int matched, int right, int wrong);
  /// A step of `tokens` tokens, drafts included.
  void record_step(int tokens, bool with_prefill, std::chrono::nanoseconds time);

  /// Chance that the next token of such a draft is right.
  [[nodiscard]] double chance(const Candidate& candidate) const;

 private:
  static constexpr std::size_t match_classes = 6;  // matches of 0, 1, 2..3, 4..7, 8..15, 16 and more tokens
  [[nodiscard]] static std::size_t match_class(int matched);
  [[nodiscard]] double step_seconds(const Step& step, int drafts) const;
  void choose_most_valuable(const Step& step, std::span<const Candidate> candidates);
  void probe(std::span<const Candidate> candidates);

  detail::StepTimes times_;
  std::array<std::array<DraftAcceptance, match_classes>, num_draft_sources> acceptance_;  // of all samples
  std::vector<double> chances_, reach_;  // scratch, by candidate: chance of a token; that the next to add is reached and right
  std::vector<int> lengths_, order_, heap_;  // scratch; `order_`: candidates whose drafts were lengthened, one after another
  int steps_without_ = 0;
};

}  // namespace fixpoint::engine
