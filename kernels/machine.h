#pragma once

namespace fixpoint::kernels {

/// What this machine can do at most, with `threads` threads at once: the roof that speeds are quoted against.
/// Zero where the machine lacks the instructions.
struct MachineLimits {
  double read_bytes_per_s = 0;  ///< memory reads from large pages, four streams a thread, past every cache
  double fp32_flops = 0;        ///< fused multiply-adds count as two
  double bf16_flops = 0;        ///< BF16 dot products with F32 accumulation
  double int8_ops = 0;          ///< 8-bit dot products with 32-bit accumulation; a multiply-add counts as two
};

/// Measures for about a second in all. `threads` 0: as many as this process may run on.
[[nodiscard]] MachineLimits measure_machine_limits(int threads = 0);

}  // namespace fixpoint::kernels
