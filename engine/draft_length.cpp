#include "engine/draft_length.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace fixpoint::engine {
namespace {

constexpr double fading_of_all = 0.98, fading_of_sample = 0.95;
constexpr double sample_prior_weight = 2; // what all samples show, against what this one does, in tokens
constexpr double fixed_prior_weight = 8;
constexpr double surest = 0.99, least_sure = 0.01;
constexpr double not_worth_asking = 0.02; // chance below which longer drafts are not even considered
constexpr double probe_chance = 0.5;
constexpr int probe_length = 4;

/// Before anything was measured.
double first_guess(DraftSource source, std::size_t match_class) {
  const double longer = 0.08 * static_cast<double>(match_class);
  switch (source) {
    case DraftSource::previous_attempt: return 0.5 + longer;
    case DraftSource::session_text: return 0.35 + longer;
    case DraftSource::prompt: return 0.2 + longer;
  }
  return 0;
}

}  // namespace

void DraftAcceptance::record(int right, int wrong, double fading) {
  for (int i = 0; i < right + wrong; ++i) {
    right_ *= fading;
    wrong_ *= fading;
  }
  right_ += right;
  wrong_ += wrong;
}

double DraftAcceptance::rate(double prior, double prior_weight) const {
  return (right_ + prior * prior_weight) / (right_ + wrong_ + prior_weight);
}

std::size_t DraftLength::match_class(int matched) {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(std::max(matched, 0)))), match_classes - 1);
}

double DraftLength::chance(const Candidate& candidate) const {
  const auto source = static_cast<std::size_t>(candidate.source);
  const std::size_t of_match = match_class(candidate.matched);
  const double all = acceptance_[source][of_match].rate(first_guess(candidate.source, of_match), fixed_prior_weight);
  const double own = candidate.acceptance == nullptr ? all : (*candidate.acceptance)[source].rate(all, sample_prior_weight);
  return std::clamp(own, least_sure, surest);
}

void DraftLength::record(SampleAcceptance& sample, DraftSource source, int matched, int right, int wrong) {
  const auto index = static_cast<std::size_t>(source);
  acceptance_[index][match_class(matched)].record(right, wrong, fading_of_all);
  sample[index].record(right, wrong, fading_of_sample);
}

void DraftLength::record_step(int tokens, bool with_prefill, std::chrono::nanoseconds time) {
  if (with_prefill) {
    times_.record_prefill(tokens, time);
  } else {
    times_.record_decode(tokens, time);
  }
}

/// What the decoding costs: a step without prefill, and what drafts add to the step at hand. A prefill would be computed
/// anyway.
double DraftLength::step_seconds(const Step& step, int drafts) const {
  if (step.tokens == step.decoding) return times_.decode(step.decoding + drafts);
  return times_.decode(step.decoding) + drafts * times_.per_token();
}

bool DraftLength::may_pay(const Step& step) {
  if (step.most_drafts < 1 || step.decoding < 1) return false;
  if (!times_.known()) return true;
  const double least = least_gain * step.decoding / step_seconds(step, 0);
  for (int drafts = 1; drafts <= step.most_drafts; drafts *= 2) {
    if ((step.decoding + surest * drafts) / step_seconds(step, drafts) > least) return true;
  }
  return ++steps_without_ >= probe_interval;
}

std::span<const int> DraftLength::choose(const Step& step, std::span<const Candidate> candidates) {
  lengths_.assign(candidates.size(), 0);
  if (!times_.known() || candidates.empty()) return lengths_;
  choose_most_valuable(step, candidates);
  const bool none = std::all_of(lengths_.begin(), lengths_.end(), [](int length) { return length == 0; });
  if (none && ++steps_without_ < probe_interval) return lengths_;
  if (none) probe(candidates);
  steps_without_ = 0;
  return lengths_;
}

/// Lengthens the drafts one token at a time, always the one whose next token is likeliest to be reached and right, and goes
/// back to where the tokens a second were most.
void DraftLength::choose_most_valuable(const Step& step, std::span<const Candidate> candidates) {
  chances_.clear();
  order_.clear();
  for (const Candidate& candidate : candidates) chances_.push_back(candidate.length > 0 ? chance(candidate) : 0.0);
  reach_ = chances_;
  double tokens = step.decoding;
  double best = least_gain * tokens / step_seconds(step, 0);
  std::size_t best_drafts = 0;
  heap_.resize(candidates.size());
  std::iota(heap_.begin(), heap_.end(), 0);
  const auto less = [this](int a, int b) {
    const double x = reach_[static_cast<std::size_t>(a)], y = reach_[static_cast<std::size_t>(b)];
    return x != y ? x < y : a > b;
  };
  std::make_heap(heap_.begin(), heap_.end(), less);
  while (static_cast<int>(order_.size()) < step.most_drafts) {
    std::pop_heap(heap_.begin(), heap_.end(), less);
    const auto i = static_cast<std::size_t>(heap_.back());
    if (reach_[i] < not_worth_asking) break;
    tokens += reach_[i];
    order_.push_back(heap_.back());
    reach_[i] = ++lengths_[i] < candidates[i].length ? reach_[i] * chances_[i] : 0.0;
    std::push_heap(heap_.begin(), heap_.end(), less);
    const double rate = tokens / step_seconds(step, static_cast<int>(order_.size()));
    if (rate <= best) continue;
    best = rate;
    best_drafts = order_.size();
  }
  for (std::size_t i = best_drafts; i < order_.size(); ++i) --lengths_[static_cast<std::size_t>(order_[i])];
}

/// A short draft where one is likely to be right: what it costs may have changed, or was never measured.
void DraftLength::probe(std::span<const Candidate> candidates) {
  const auto likeliest = std::max_element(chances_.begin(), chances_.end());
  if (*likeliest < probe_chance) return;
  const auto i = static_cast<std::size_t>(likeliest - chances_.begin());
  lengths_[i] = std::min(probe_length, candidates[i].length);
}

}  // namespace fixpoint::engine
