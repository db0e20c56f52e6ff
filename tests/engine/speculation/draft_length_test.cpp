#include "engine/draft_length.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace fixpoint::engine {
namespace {

using Candidate = DraftLength::Candidate;
using Step = DraftLength::Step;

std::chrono::nanoseconds ms(double value) { return std::chrono::nanoseconds(static_cast<std::int64_t>(value * 1e6)); }

/// Bound by memory up to a knee, then by arithmetic.
struct Machine {
  double base_ms = 8;
  double slope_ms = 1.1;
  int knee = 0;  // tokens that cost nothing more
  [[nodiscard]] double step_ms(int tokens) const { return base_ms + slope_ms * std::max(0, tokens - 1 - knee); }
};

const Machine kProcessor{};                                                  // of this project's measurements
const Machine kGraphics{.base_ms = 8, .slope_ms = 0.05, .knee = 150};

/// One sample whose drafts are right with a fixed chance, and as many others that only decode.
class Simulation {
 public:
  Simulation(const Machine& machine, int others, double chance, unsigned seed = 1) : machine_(machine), others_(others), chance_(chance), random_(seed) {
    length_.record_step(512, true, ms(machine_.step_ms(512)));
    for (int i = 0; i < 3; ++i) length_.record_step(1 + others_, false, ms(machine_.step_ms(1 + others_)));
  }

  void step(bool with_draft = true) {
    const Step step{.decoding = 1 + others_, .tokens = 1 + others_, .most_drafts = 64};
    const Candidate candidate{.source = DraftSource::session_text, .matched = 5, .length = with_draft ? 64 : 0, .acceptance = &acceptance_};
    last_ = 0;
    int right = 0;
    if (with_draft && length_.may_pay(step)) {
      last_ = length_.choose(step, {&candidate, 1})[0];
      const int looked_at = std::max(1, last_);
      while (right < looked_at && coin()) ++right;
      length_.record(acceptance_, candidate.source, candidate.matched, right, right < looked_at ? 1 : 0);
      if (last_ == 0) right = 0;
    }
    const double time = machine_.step_ms(1 + others_ + last_) * noise_(random_);
    length_.record_step(1 + others_ + last_, false, ms(time));
    tokens_ += 1 + others_ + right;
    time_ += time;
    drafts_ += last_;
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
  }
  void become(double chance) { chance_ = chance; }
  /// Tokens a second, beside those without drafts.
  [[nodiscard]] double gain() const { return tokens_ / time_ * machine_.step_ms(1 + others_) / (1 + others_); }
  [[nodiscard]] int last() const { return last_; }
  [[nodiscard]] int drafts() const { return drafts_; }
  void forget_times() { tokens_ = time_ = drafts_ = 0; }

 private:
  bool coin() { return std::uniform_real_distribution<>(0, 1)(random_) < chance_; }

  Machine machine_;
  int others_;
  double chance_;
  std::mt19937 random_;
  std::lognormal_distribution<> noise_{0, 0.1};
  DraftLength length_;
  SampleAcceptance acceptance_;
  double tokens_ = 0, time_ = 0;
  int drafts_ = 0, last_ = 0;
};

TEST(DraftLengthTest, GoodDraftsAreTriedAtLengthAndPay) {
  Simulation processor(kProcessor, 0, 0.97);
  processor.run(500);
  EXPECT_GT(processor.gain(), 3.0);
  EXPECT_GE(processor.last(), 8);
  Simulation graphics(kGraphics, 0, 0.97);
  graphics.run(500);
  EXPECT_GT(graphics.gain(), 12.0);
}

TEST(DraftLengthTest, WrongDraftsCostNextToNothing) {
  for (const double chance : {0.0, 0.02, 0.05}) {
    for (const int others : {0, 7, 31, 127}) {
      Simulation simulation(kProcessor, others, chance);
      simulation.run(2'000);
      EXPECT_GT(simulation.gain(), 0.97) << chance << " beside " << others;
    }
  }
}

TEST(DraftLengthTest, BeyondTheKneeNothingIsDrafted) {
  // 32 and more sequences use the arithmetic up: a token more costs what a token costs.
  const Machine machine{.base_ms = 8, .slope_ms = 1.5, .knee = 0};
  for (const double chance : {0.3, 0.8}) {
    Simulation simulation(machine, 63, chance);
    simulation.run(200);
    simulation.forget_times();
    simulation.run(200);
    EXPECT_EQ(simulation.drafts(), 0) << chance;
  }
}

TEST(DraftLengthTest, AtNoLoadAndWithNoChanceIsItSlower) {
  for (const Machine& machine : {kProcessor, kGraphics, Machine{.base_ms = 0.5, .slope_ms = 0.4}, Machine{.base_ms = 20, .slope_ms = 0.2, .knee = 4}}) {
    for (const int others : {0, 1, 3, 15, 63, 200}) {
      for (const double chance : {0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99}) {
        Simulation simulation(machine, others, chance);
        simulation.run(1'500);
        EXPECT_GT(simulation.gain(), 0.97) << "base " << machine.base_ms << ", others " << others << ", chance " << chance;
      }
    }
  }
}

TEST(DraftLengthTest, FollowsDraftsThatBecomeGoodOrBad) {
  Simulation simulation(kProcessor, 0, 0.0);
  simulation.run(300);
  EXPECT_EQ(simulation.last(), 0);
  simulation.become(0.97);
  simulation.run(200);
  EXPECT_GE(simulation.last(), 8) << "untried drafts that would have been right count";
  simulation.become(0.0);
  simulation.run(100);
  EXPECT_EQ(simulation.last(), 0);
}

TEST(DraftLengthTest, OneDisturbedStepDoesNotEndSpeculation) {
  DraftLength length;
  SampleAcceptance acceptance;
  const Step step{.decoding = 1, .tokens = 1, .most_drafts = 16};
  const Candidate candidate{.source = DraftSource::previous_attempt, .matched = 20, .length = 16, .acceptance = &acceptance};
  for (int i = 0; i < 20; ++i) {
    length.record_step(1, false, ms(8));
    length.record_step(17, false, ms(20));
    length.record(acceptance, candidate.source, candidate.matched, 16, 0);
  }
  length.record_step(17, false, ms(5'000));
  EXPECT_EQ(length.choose(step, {&candidate, 1})[0], 16);
}

TEST(DraftLengthTest, AFirstStepThatTookLongIsForgotten) {
  DraftLength length;
  SampleAcceptance acceptance;
  length.record_step(1, false, ms(500));  // pages of weights that were not in memory yet
  for (int i = 0; i < 3; ++i) length.record_step(1, false, ms(8));
  length.record_step(9, false, ms(80));  // no good machine for drafts
  for (int i = 0; i < 30; ++i) length.record_step(9, false, ms(80));
  const Step step{.decoding = 1, .tokens = 1, .most_drafts = 8};
  const Candidate candidate{.source = DraftSource::session_text, .matched = 5, .length = 8, .acceptance = &acceptance};
  EXPECT_EQ(length.choose(step, {&candidate, 1})[0], 0);
}

TEST(DraftLengthTest, NothingIsTriedBeforeAStepWasMeasured) {
  DraftLength length;
  SampleAcceptance acceptance;
  const Candidate candidate{.source = DraftSource::previous_attempt, .matched = 20, .length = 8, .acceptance = &acceptance};
  EXPECT_EQ(length.choose({.decoding = 1, .tokens = 1, .most_drafts = 8}, {&candidate, 1})[0], 0);
}

TEST(DraftLengthTest, TheRoomGoesToTheLikeliestDrafts) {
  DraftLength length;
  SampleAcceptance good, bad;
  for (int i = 0; i < 10; ++i) length.record_step(2, false, ms(8));
  length.record_step(20, false, ms(8.5));
  for (int i = 0; i < 50; ++i) {
    length.record(good, DraftSource::session_text, 5, 1, 0);
    length.record(bad, DraftSource::prompt, 2, 0, 1);
  }
  const std::vector<Candidate> candidates{{.source = DraftSource::prompt, .matched = 2, .length = 30, .acceptance = &bad},
                                          {.source = DraftSource::session_text, .matched = 5, .length = 9, .acceptance = &good},
                                          {.source = DraftSource::session_text, .matched = 5, .length = 0, .acceptance = &good}};
  const auto lengths = length.choose({.decoding = 3, .tokens = 3, .most_drafts = 10}, candidates);
  EXPECT_EQ(lengths[1], 9) << "never longer than the draft is";
  EXPECT_LE(lengths[0], 1);
  EXPECT_EQ(lengths[2], 0);
}

TEST(DraftLengthTest, BesideAPrefillADraftIsWeighedAgainstDecoding) {
  DraftLength length;
  SampleAcceptance acceptance;
  for (int i = 0; i < 10; ++i) {
    length.record_step(1, false, ms(8));
    length.record_step(300, true, ms(300));
    length.record(acceptance, DraftSource::previous_attempt, 20, 10, 0);
  }
  const Candidate candidate{.source = DraftSource::previous_attempt, .matched = 20, .length = 8, .acceptance = &acceptance};
  const Step step{.decoding = 1, .tokens = 301, .most_drafts = 64};
  EXPECT_TRUE(length.may_pay(step));
  EXPECT_EQ(length.choose(step, {&candidate, 1})[0], 8) << "a millisecond each, where a step of its own takes eight";
}

TEST(DraftLengthTest, NoRoomMeansNoDrafts) {
  DraftLength length;
  EXPECT_FALSE(length.may_pay({.decoding = 4, .tokens = 512, .most_drafts = 0}));
  EXPECT_FALSE(length.may_pay({.decoding = 0, .tokens = 100, .most_drafts = 10}));
}

TEST(DraftLengthTest, NowAndThenAShortDraftIsTriedAgain) {
  DraftLength length;
  SampleAcceptance acceptance;
  for (int i = 0; i < 50; ++i) {
    length.record_step(1, false, ms(8));
    for (const int tokens : {2, 3, 5, 9, 17, 33}) length.record_step(tokens, false, ms(8.0 * tokens));  // measured in bad times
    length.record(acceptance, DraftSource::session_text, 5, 1, 0);
  }
  const Candidate candidate{.source = DraftSource::session_text, .matched = 5, .length = 30, .acceptance = &acceptance};
  int tried = 0;
  for (int i = 0; i < 5 * DraftLength::probe_interval; ++i) {
    tried += length.choose({.decoding = 1, .tokens = 1, .most_drafts = 64}, {&candidate, 1})[0] > 0 ? 1 : 0;
  }
  EXPECT_EQ(tried, 5);
}

TEST(DraftLengthTest, AlsoWhereNoDraftSeemsToPayOneIsTriedAgain) {
  DraftLength length;
  SampleAcceptance acceptance;
  for (int i = 0; i < 50; ++i) {
    length.record_step(8, false, ms(8));
    for (int tokens = 9; tokens <= 72; ++tokens) length.record_step(tokens, false, ms(3.0 * tokens));  // measured in bad times
    length.record(acceptance, DraftSource::session_text, 5, 1, 0);
  }
  const Step step{.decoding = 8, .tokens = 8, .most_drafts = 64};
  const Candidate candidate{.source = DraftSource::session_text, .matched = 5, .length = 30, .acceptance = &acceptance};
  int asked = 0, tried = 0;
  for (int i = 0; i < 5 * DraftLength::probe_interval; ++i) {
    if (!length.may_pay(step)) continue;
    ++asked;
    tried += length.choose(step, {&candidate, 1})[0] > 0 ? 1 : 0;
  }
  EXPECT_EQ(asked, 5);
  EXPECT_EQ(tried, 5);
  length.record_step(12, false, ms(8.5));  // the bad times are over
  EXPECT_TRUE(length.may_pay(step));
  EXPECT_EQ(length.choose(step, {&candidate, 1})[0], 4);
}

}  // namespace
}  // namespace fixpoint::engine
