#include "engine/kv_comparison.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace fixpoint::engine {
namespace {

constexpr std::size_t kStepTokens = 256;

/// A window's text in one sequence, computed chunk by chunk.
class Window {
 public:
  Window(StepModel& model, std::span<const TokenId> tokens, const KvComparisonOptions& options)
      : model_(model), tokens_(tokens), options_(options),
        first_compared_(tokens.size() - std::min(tokens.size(), static_cast<std::size_t>(options.compared))) {}

  /// Logits of the compared positions, one after another.
  [[nodiscard]] std::vector<float> logits() {
    std::vector<float> all;
    for (std::size_t done = 0; done < tokens_.size(); done += kStepTokens) {
      const auto logits = step(done, std::min(tokens_.size(), done + kStepTokens));
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

 private:
  std::span<const float> step(std::size_t first, std::size_t last) {
    const auto n = static_cast<std::int32_t>(last - first);
    const auto blocks = static_cast<std::int32_t>((last + static_cast<std::size_t>(options_.block_size) - 1) / static_cast<std::size_t>(options_.block_size));
    const std::vector<std::int32_t> q_indptr{0, n}, block_indptr{0, blocks};
    const std::vector<std::int32_t> last_block_len{static_cast<std::int32_t>(last) - (blocks - 1) * options_.block_size};
    std::vector<std::int32_t> ids(static_cast<std::size_t>(blocks)), positions(last - first), rows;
    std::iota(ids.begin(), ids.end(), 0);
    std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(first));
    for (std::size_t i = first; i < last; ++i) {
      if (i >= first_compared_) rows.push_back(static_cast<std::int32_t>(i - first));
    }
    return model_.forward({tokens_.subspan(first, last - first),
                           {options_.block_size, q_indptr, block_indptr, ids, last_block_len, positions}, rows, {}}).logits;
  }

  StepModel& model_;
  std::span<const TokenId> tokens_;
  const KvComparisonOptions& options_;
  std::size_t first_compared_;
};

double log_of_sum(std::span<const float> logits) {
  const double highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - highest);
  return highest + std::log(sum);
}

void add_position(KvComparison& to, std::span<const float> expected, std::span<const float> actual) {
  double error = 0;
  double divergence = 0;
  const double of_expected = log_of_sum(expected);
  const double of_actual = log_of_sum(actual);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double a = expected[i];
    const double b = actual[i];
    error += std::abs(a - b);
    to.largest_error = std::max(to.largest_error, std::abs(a - b));
    divergence += std::exp(a - of_expected) * ((a - of_expected) - (b - of_actual));
  }
  to.mean_error += error / static_cast<double>(expected.size());
  to.mean_divergence += divergence;
  to.largest_divergence = std::max(to.largest_divergence, divergence);
  if (std::ranges::max_element(expected) - expected.begin() == std::ranges::max_element(actual) - actual.begin()) to.same_first += 1;
  ++to.positions;
}

void add_window(KvComparison& to, std::span<const float> expected, std::span<const float> actual, std::size_t vocabulary) {
  for (std::size_t at = 0; at < expected.size(); at += vocabulary) {
    add_position(to, expected.subspan(at, vocabulary), actual.subspan(at, vocabulary));
  }
}

}  // namespace

std::vector<KvComparison> compare_kv_types(StepModel& model, std::span<const TokenId> tokens,
                                           std::span<const kernels::KvType> types, const KvComparisonOptions& options) {
  if (tokens.empty() || options.window < 1 || options.window > model.context_length()) {
    throw std::invalid_argument("compare_kv_types: no text, or a window beyond the model's context");
  }
  const auto window = std::min(tokens.size(), static_cast<std::size_t>(options.window));
  const auto blocks = static_cast<std::int32_t>(window / static_cast<std::size_t>(options.block_size) + 1);
  const auto computed = [&](kernels::KvType type, std::size_t start) {
    model.allocate_kv(blocks, options.block_size, type);
    return Window(model, tokens.subspan(start, window), options).logits();
  };
  std::vector<KvComparison> all;
  for (const auto type : types) all.push_back({.type = type});
  for (std::size_t start = 0; start + window <= tokens.size(); start += window) {
    const auto expected = computed(options.baseline, start);
    for (auto& comparison : all) {
      add_window(comparison, expected, computed(comparison.type, start), static_cast<std::size_t>(model.vocab_size()));
    }
  }
  for (auto& comparison : all) {
    const auto n = static_cast<double>(comparison.positions);
    comparison.mean_error /= n;
    comparison.mean_divergence /= n;
    comparison.same_first /= n;
  }
  return all;
}

}  // namespace fixpoint::engine
