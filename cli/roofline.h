#pragma once

#include <cstdint>

#include "engine/footprint.h"
#include "kernels/machine.h"

namespace fixpoint::cli {

/// How fast this machine could run a model at most: the slower of arithmetic at its measured peak and memory at its
/// measured bandwidth. The arithmetic is what the weights' type allows: FP32 for F32 and F16, BF16 dot products for BF16,
/// 8-bit dot products for the quantised types (FP32 where the machine lacks them).
class Roofline {
 public:
  Roofline(const engine::Footprint& cost, kernels::DType weights, const kernels::MachineLimits& limits);

  /// Tokens a second of a prefill of `tokens`.
  [[nodiscard]] double prefill(std::int64_t tokens) const;
  /// Tokens a second, all sequences together, at `context` tokens each.
  [[nodiscard]] double decode(std::int64_t sequences, std::int64_t context, double kv_bytes_per_token) const;

 private:
  engine::Footprint cost_;
  double flops_;
  double bytes_per_s_;
};

}  // namespace fixpoint::cli
