#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace fixpoint::engine::detail {

/// How long a step takes, as a function of the tokens in it, learned from the steps that were run. Decode steps (drafts
/// included: every token has its logits) are kept by size; of steps with a prefill, what a token costs. What was never
/// measured lies between its neighbours, or on a line from the nearest.
class StepTimes {
 public:
  using Duration = std::chrono::duration<double>;

  void record_decode(int tokens, Duration time);
  void record_prefill(int tokens, Duration time);

  /// Whether a decode step of any size was measured.
  [[nodiscard]] bool known() const { return known_; }
  /// Seconds of a step that decodes and verifies `tokens` tokens. 0 while nothing is known.
  [[nodiscard]] double decode(double tokens) const;
  /// Seconds that a token more costs where many are computed.
  [[nodiscard]] double per_token() const;

 private:
  // Sizes up to 16 one by one, then eight to each doubling, up to 4,096 and beyond.
  static constexpr std::size_t num_sizes = 16 + 8 * 8 + 1;
  struct Mean {
    double tokens = 0, seconds = 0;
    int count = 0;
  };
  [[nodiscard]] static std::size_t size_index(int tokens);

  std::array<Mean, num_sizes> sizes_{};
  double prefill_per_token_ = 0;
  bool known_ = false;
};

}  // namespace fixpoint::engine::detail
