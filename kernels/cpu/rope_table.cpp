#include "kernels/cpu/rope_table.h"

#include <algorithm>
#include <cmath>

namespace fixpoint::kernels::cpu {

void RopeTable::prepare(const Rope& rope, std::int32_t highest_position) {
  if (rope.inv_freq != inv_freq_ || rope.magnitude != magnitude_) {
    inv_freq_ = rope.inv_freq;
    magnitude_ = rope.magnitude;
    values_.clear();
  }
  if (inv_freq_.empty()) return;
  std::size_t position = values_.size() / row_size();
  const std::size_t wanted = static_cast<std::size_t>(highest_position) + 1;
  if (wanted <= position) return;
  // Some ahead, so that decoding does not compute one row a step.
  const std::size_t rows = std::max(wanted, position + 256);
  values_.resize(rows * row_size());
  for (; position < rows; ++position) {
    float* cosines = values_.data() + position * row_size();
    for (std::size_t i = 0; i < inv_freq_.size(); ++i) {
      const double angle = static_cast<double>(position) * static_cast<double>(inv_freq_[i]);
      cosines[i] = static_cast<float>(std::cos(angle) * static_cast<double>(magnitude_));
      cosines[inv_freq_.size() + i] = static_cast<float>(std::sin(angle) * static_cast<double>(magnitude_));
    }
  }
}

}  // namespace fixpoint::kernels::cpu
