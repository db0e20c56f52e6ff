#pragma once

#include <vector>

#include "kernels/backend.h"

namespace fixpoint::kernels::cpu {

/// Cosines and sines by position, computed once in double precision. A model has one Rope, so one is kept.
class RopeTable {
 public:
  /// Makes rows up to `highest_position` available.
  void prepare(const Rope& rope, std::int32_t highest_position);
  /// [2][pairs]: cosines, then sines, times the magnitude.
  [[nodiscard]] const float* row(std::int32_t position) const {
    return values_.data() + static_cast<std::size_t>(position) * row_size();
  }

 private:
  [[nodiscard]] std::size_t row_size() const { return 2 * inv_freq_.size(); }

  std::vector<float> inv_freq_;
  float magnitude_ = 1.0F;
  std::vector<float> values_;
};

}  // namespace fixpoint::kernels::cpu
