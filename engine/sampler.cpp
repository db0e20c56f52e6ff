#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "engine/counter_rng.h"
#include "engine/detail/logit_scan.h"

namespace fixpoint::engine {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

constexpr auto likelier = [](const auto& a, const auto& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
};

/// Below this, dividing by the temperature leaves float's range.
bool greedy(const SamplingParams& params) { return params.temperature < 1e-5F; }

/// `row` is left to the caller.
kernels::RowChoice choice_at(const SamplePoint& point, std::size_t vocab_size) {
  const SamplingParams& params = *point.params;
  kernels::RowChoice choice{.vocab_size = static_cast<std::int32_t>(vocab_size)};
  if (greedy(params)) return choice;
  choice.inverse_temperature = 1.0F / params.temperature;
  if (params.min_p > 0.0F) choice.depth = -std::log(params.min_p) * params.temperature;
  choice.top_k = params.top_k;
  choice.top_p = params.top_p;
  choice.u = uniform(point.seed, point.sample, point.position, Purpose::token);
  return choice;
}

std::size_t place(TokenId token) { return static_cast<std::size_t>(token); }

}  // namespace

void TokenHistory::add_prompt(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) counts_[token].in_prompt = true;
}

bool uses_history(const SamplingParams& params) {
  return params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F || params.frequency_penalty != 0.0F;
}

std::optional<SubmitError> check(const SamplingParams& params, std::int64_t vocab_size) {
  const auto invalid = [](const char* field, const char* detail) {
    return SubmitError{SubmitError::Kind::invalid, field, detail};
  };
  // Written so that NaN fails.
  if (!(params.temperature >= 0.0F && params.temperature <= 1000.0F)) return invalid("temperature", "must be in 0..1000");
  if (params.top_k < 0) return invalid("top_k", "must not be negative");
  if (!(params.top_p > 0.0F && params.top_p <= 1.0F)) return invalid("top_p", "must be in (0, 1]");
  if (!(params.min_p >= 0.0F && params.min_p <= 1.0F)) return invalid("min_p", "must be in [0, 1]");
  if (!(params.repetition_penalty > 0.0F && params.repetition_penalty <= 100.0F)) {
    return invalid("repetition_penalty", "must be in (0, 100]");
  }
  if (!(std::abs(params.presence_penalty) <= 100.0F)) return invalid("presence_penalty", "must be in -100..100");
  if (!(std::abs(params.frequency_penalty) <= 100.0F)) return invalid("frequency_penalty", "must be in -100..100");
  if (params.top_logprobs < 0 || params.top_logprobs > 20) return invalid("top_logprobs", "must be in 0..20");
  for (const auto& [token, bias] : params.logit_bias) {
    if (token < 0 || token >= vocab_size) return invalid("logit_bias", "holds a token id outside the vocabulary");
    if (std::isnan(bias) || bias == infinity) return invalid("logit_bias", "must be a number or -infinity");
  }
  return std::nullopt;
}

bool Sampler::find_max(std::span<const float> logits) {
  const detail::Maximum maximum = detail::find_maximum(logits, block_max_);
  max_ = maximum.value;
  argmax_ = static_cast<TokenId>(maximum.index);
  return maximum.valid;
}

/// The logits after bias and penalties: the given ones where there is nothing to change, a changed copy otherwise. Fills
/// block_max_, max_ and argmax_ for what it returns.
tl::expected<std::span<const float>, std::string> Sampler::adjust(std::span<const float> logits,
                                                                  const SamplePoint& point) {
  if (!find_max(logits)) return tl::unexpected(std::string(logits_not_finite));
  const SamplingParams& params = *point.params;
  const bool penalised = uses_history(params) && point.history != nullptr;
  if (params.logit_bias.empty() && point.forbidden.empty() && !penalised) return logits;

  adjusted_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : params.logit_bias) {
    if (place(token) < adjusted_.size()) adjusted_[place(token)] += bias;
  }
  if (penalised) {
    for (const auto& [token, count] : point.history->counts()) {
      if (place(token) >= adjusted_.size()) continue;
      float& logit = adjusted_[place(token)];
      logit = logit > 0.0F ? logit / params.repetition_penalty : logit * params.repetition_penalty;
      if (count.in_output > 0) {
        logit -= params.presence_penalty + params.frequency_penalty * static_cast<float>(count.in_output);
      }
    }
  }
  for (const TokenId token : point.forbidden) {
    if (place(token) < adjusted_.size()) adjusted_[place(token)] = -infinity;
  }
  if (!find_max(adjusted_)) return tl::unexpected(std::string("no token is left to choose from"));
  return adjusted_;
}

void Sampler::collect_at_least(std::span<const float> logits, float floor) {
  candidates_.clear();
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    if (block_max_[block] < floor) continue;
    const std::size_t end = std::min((block + 1) * detail::scan_block, logits.size());
    for (std::size_t i = block * detail::scan_block; i < end; ++i) {
      if (logits[i] >= floor) candidates_.push_back({logits[i], static_cast<TokenId>(i), 0});
    }
  }
}

/// The k likeliest of those at or above `floor`. Each of the k largest block maxima belongs to some token, so the k-th of
/// them bounds the k-th likeliest token from below: few candidates are left to select from.
void Sampler::collect_top(std::span<const float> logits, std::size_t k, float floor) {
  if (k < block_max_.size()) {
    std::vector<float> maxima = block_max_;
    const auto kth = maxima.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(maxima.begin(), kth, maxima.end(), std::greater<>());
    floor = std::max(floor, *kth);
  }
  collect_at_least(logits, floor);
  if (candidates_.size() <= k) return;
  ranked_ = candidates_;
  const auto last = ranked_.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(ranked_.begin(), last, ranked_.end(), likelier);
  keep_through(*last);
}

/// Drops the candidates that are less likely than `last`.
void Sampler::keep_through(const Candidate& last) {
  std::erase_if(candidates_, [&](const Candidate& candidate) { return likelier(last, candidate); });
}

/// The likeliest tokens, enough that their weights sum to `mass`, or a few more. At a depth of 32 all that have weight are
/// there. After weigh_all.
void Sampler::collect_mass(std::span<const float> logits, std::uint64_t mass, float inverse_temperature) {
  std::uint64_t total = 0;
  for (float depth = 2.0F; total < mass; depth *= 1.5F) {
    collect_at_least(logits, max_ - depth / inverse_temperature);
    total = 0;
    for (Candidate& candidate : candidates_) total += candidate.weight = kernels::fixed_point(weights_[place(candidate.token)]);
  }
}

std::uint64_t Sampler::weigh(float inverse_temperature) {
  std::uint64_t total = 0;
  for (Candidate& candidate : candidates_) {
    candidate.weight = detail::token_weight(candidate.logit, max_, inverse_temperature);
    total += candidate.weight;
  }
  return total;
}

std::uint64_t Sampler::weigh_all(std::span<const float> logits, float max, float inverse_temperature) {
  weights_.resize(logits.size());
  return detail::exponentiate(logits, max, inverse_temperature, weights_, block_weight_);
}

/// Cuts candidates_ to the fewest of the likeliest whose weights reach `mass`, by repeated halving. Returns their weight.
std::uint64_t Sampler::keep_mass(std::uint64_t mass) {
  ranked_ = candidates_;
  std::size_t kept = 0;
  std::size_t end = ranked_.size();
  std::uint64_t weight = 0;
  while (end - kept > 1) {
    const std::size_t middle = kept + (end - kept) / 2;
    const auto first = ranked_.begin();
    std::nth_element(first + static_cast<std::ptrdiff_t>(kept), first + static_cast<std::ptrdiff_t>(middle),
                     first + static_cast<std::ptrdiff_t>(end), likelier);
    std::uint64_t upper = 0;
    for (std::size_t i = kept; i < middle; ++i) upper += ranked_[i].weight;
    if (weight + upper >= mass) {
      end = middle;
    } else {
      weight += upper;
      kept = middle;
    }
  }
  weight += ranked_[kept].weight;
  keep_through(ranked_[kept]);
  return weight;
}

Sampler::Filtered Sampler::filter(std::span<const float> logits, const kernels::RowChoice& choice) {
  const auto k = static_cast<std::size_t>(choice.top_k);
  const bool cut_k = k > 0 && k < logits.size();
  const bool cut_p = choice.top_p < 1.0F;
  if (!cut_k && choice.depth == infinity) {
    const std::uint64_t total = weigh_all(logits, max_, choice.inverse_temperature);
    if (!cut_p) return {true, total};
    const std::uint64_t mass = kernels::kept_mass(total, choice.top_p);
    collect_mass(logits, mass, choice.inverse_temperature);
    return {false, keep_mass(mass)};
  }
  const float floor = std::max(max_ - choice.depth, std::numeric_limits<float>::lowest());
  if (cut_k) {
    collect_top(logits, k, floor);
  } else {
    collect_at_least(logits, floor);
  }
  const std::uint64_t total = weigh(choice.inverse_temperature);
  return {false, cut_p ? keep_mass(kernels::kept_mass(total, choice.top_p)) : total};
}

TokenId Sampler::draw(const Filtered& filtered, double u) const {
  std::uint64_t left = kernels::drawn_mass(filtered.total, u);
  if (!filtered.everything) {
    auto candidate = candidates_.begin();
    while (left >= candidate->weight) left -= (candidate++)->weight;
    return candidate->token;
  }
  std::size_t block = 0;
  while (left >= block_weight_[block]) left -= block_weight_[block++];
  std::size_t i = block * detail::scan_block;
  while (left >= kernels::fixed_point(weights_[i])) left -= kernels::fixed_point(weights_[i++]);
  return static_cast<TokenId>(i);
}

TokenLogprobs Sampler::logprobs(std::span<const float> logits, TokenId chosen, int top) {
  const float max = detail::find_maximum(logits, block_max_).value;
  const double log_total = std::log(static_cast<double>(weigh_all(logits, max, 1.0F)) * 0x1p-40) + static_cast<double>(max);
  const auto logprob = [&](float logit) { return static_cast<float>(static_cast<double>(logit) - log_total); };
  TokenLogprobs result{{chosen, logprob(logits[place(chosen)])}, {}};
  if (top > 0) {
    collect_top(logits, static_cast<std::size_t>(top), std::numeric_limits<float>::lowest());
    std::sort(candidates_.begin(), candidates_.end(), likelier);
    for (const Candidate& candidate : candidates_) result.top.push_back({candidate.token, logprob(candidate.logit)});
  }
  return result;
}

std::optional<kernels::RowChoice> Sampler::row_choice(const SamplePoint& point) const {
  const SamplingParams& params = *point.params;
  if (!params.logit_bias.empty() || uses_history(params) || !point.forbidden.empty() || params.logprobs) return std::nullopt;
  return choice_at(point, vocab_size_);
}

TokenId Sampler::choose(std::span<const float> logits, const kernels::RowChoice& choice) {
  logits = logits.first(std::min(logits.size(), vocab_size_));
  if (!find_max(logits)) return -1;
  return choice.inverse_temperature > 0.0F ? draw(filter(logits, choice), choice.u) : argmax_;
}

tl::expected<SampledToken, std::string> Sampler::sample(std::span<const float> logits, const SamplePoint& point) {
  const SamplingParams& params = *point.params;
  logits = logits.first(std::min(logits.size(), vocab_size_));
  const auto adjusted = adjust(logits, point);
  if (!adjusted) return tl::unexpected(adjusted.error());
  SampledToken result;
  if (greedy(params)) {
    result.token = argmax_;
  } else {
    const kernels::RowChoice choice = choice_at(point, vocab_size_);
    result.token = draw(filter(*adjusted, choice), choice.u);
  }
  if (params.logprobs) result.logprobs = logprobs(logits, result.token, params.top_logprobs);
  return result;
}

tl::expected<std::vector<Sampler::Probability>, std::string> Sampler::distribution(std::span<const float> logits,
                                                                                 const SamplePoint& point) {
  const SamplingParams& params = *point.params;
  logits = logits.first(std::min(logits.size(), vocab_size_));
  const auto adjusted = adjust(logits, point);
  if (!adjusted) return tl::unexpected(adjusted.error());
  std::vector<Probability> result;
  if (greedy(params)) {
    result.push_back({argmax_, 1.0F});
    return result;
  }
  const Filtered filtered = filter(*adjusted, choice_at(point, vocab_size_));
  const auto total = static_cast<double>(filtered.total);
  const auto add = [&](TokenId token, std::uint64_t weight) {
    if (weight > 0) result.push_back({token, static_cast<float>(static_cast<double>(weight) / total)});
  };
  if (filtered.everything) {
    for (std::size_t i = 0; i < weights_.size(); ++i) add(static_cast<TokenId>(i), kernels::fixed_point(weights_[i]));
  } else {
    for (const Candidate& candidate : candidates_) add(candidate.token, candidate.weight);
  }
  return result;
}

}  // namespace fixpoint::engine
