#include "engine/detail/step_times.h"

#include <algorithm>
#include <cmath>

namespace fixpoint::engine::detail {
namespace {

constexpr double steady_weight = 0.1;   // of a new measurement, once there are enough
constexpr double largest_rise = 1.5;    // a step that was disturbed counts for no more than so many times the expected
constexpr double true_fall = 0.6;       // nothing makes a step so much faster than it is: what was measured before was disturbed
constexpr int long_prefill = 32;        // tokens from which the time of a prefill tells what a token costs
constexpr double guessed_share = 1.0 / 8;  // of a single token's step, for a token more, before anything says otherwise

}  // namespace

std::size_t StepTimes::size_index(int tokens) {
  if (tokens <= 16) return static_cast<std::size_t>(std::max(tokens, 1)) - 1;
  const auto eighths = static_cast<std::size_t>(8.0 * std::log2(tokens / 16.0));
  return std::min(16 + eighths, num_sizes - 1);
}

void StepTimes::record_decode(int tokens, Duration time) {
  Mean& mean = sizes_[size_index(tokens)];
  const double expected = mean.count > 0 ? mean.seconds : decode(tokens);
  const double seconds = expected > 0 ? std::min(time.count(), largest_rise * expected) : time.count();
  known_ = true;
  ++mean.count;
  const bool afresh = mean.count == 1 || seconds < true_fall * mean.seconds;
  const double weight = afresh ? 1.0 : std::max(steady_weight, 1.0 / mean.count);
  mean.seconds += weight * (seconds - mean.seconds);
  mean.tokens += weight * (tokens - mean.tokens);
}

void StepTimes::record_prefill(int tokens, Duration time) {
  if (tokens < long_prefill) return;
  const double each = time.count() / tokens;
  const bool afresh = prefill_per_token_ <= 0 || each < true_fall * prefill_per_token_;
  prefill_per_token_ += (afresh ? 1.0 : steady_weight) * (each - prefill_per_token_);
}

double StepTimes::per_token() const {
  if (prefill_per_token_ > 0) return prefill_per_token_;
  const auto smallest = std::find_if(sizes_.begin(), sizes_.end(), [](const Mean& mean) { return mean.count > 0; });
  return smallest == sizes_.end() ? 0.0 : smallest->seconds * guessed_share / smallest->tokens;
}

double StepTimes::decode(double tokens) const {
  const Mean* below = nullptr;
  for (const Mean& mean : sizes_) {
    if (mean.count == 0) continue;
    if (mean.tokens >= tokens) {
      if (below == nullptr || mean.tokens <= tokens) return mean.seconds;
      const double part = (tokens - below->tokens) / (mean.tokens - below->tokens);
      return below->seconds + part * (mean.seconds - below->seconds);
    }
    below = &mean;
  }
  return below == nullptr ? 0.0 : below->seconds + (tokens - below->tokens) * per_token();
}

}  // namespace fixpoint::engine::detail
