#include "cli/roofline.h"

#include <algorithm>

namespace fixpoint::cli {
namespace {

double peak(kernels::DType weights, const kernels::MachineLimits& limits) {
  switch (weights) {
    case kernels::DType::f32:
    case kernels::DType::f16: return limits.fp32_flops;
    case kernels::DType::bf16: return std::max(limits.bf16_flops, limits.fp32_flops);
    default: return std::max(limits.int8_ops, limits.fp32_flops);
  }
}

}  // namespace

Roofline::Roofline(const engine::Footprint& cost, kernels::DType weights, const kernels::MachineLimits& limits)
    : cost_(cost), flops_(peak(weights, limits)), bytes_per_s_(limits.read_bytes_per_s) {}

double Roofline::prefill(std::int64_t tokens) const {
  const double arithmetic = engine::prefill_flops_per_token(cost_, tokens) / flops_;
  const double memory = cost_.decode_weight_bytes / static_cast<double>(tokens) / bytes_per_s_;
  return 1 / std::max(arithmetic, memory);
}

double Roofline::decode(std::int64_t sequences, std::int64_t context, double kv_bytes_per_token) const {
  const auto n = static_cast<double>(sequences);
  const double arithmetic = n * engine::decode_flops_per_token(cost_, context) / flops_;
  const double kv_bytes = n * static_cast<double>(context) * kv_bytes_per_token;
  return n / std::max(arithmetic, (cost_.decode_weight_bytes + kv_bytes) / bytes_per_s_);
}

}  // namespace fixpoint::cli
