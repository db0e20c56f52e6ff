#pragma once

namespace fixpoint::kernels::cpu {

/// Instruction sets that the processor has and the system saves.
struct CpuFeatures {
  bool avx2 = false;         ///< with FMA and F16C
  bool avx512 = false;       ///< F, BW, VL and DQ
  bool avx512_vnni = false;  ///< implies avx512
  bool avx512_bf16 = false;  ///< implies avx512
};

[[nodiscard]] CpuFeatures cpu_features();

}  // namespace fixpoint::kernels::cpu
