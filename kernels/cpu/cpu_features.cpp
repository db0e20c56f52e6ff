#include "kernels/cpu/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace fixpoint::kernels::cpu {

#if defined(__x86_64__)
namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx);
  return r;
}

bool bit(unsigned value, unsigned index) { return ((value >> index) & 1U) != 0; }

// Which register states the system saves (XCR0).
unsigned saved_states() {
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

}  // namespace

CpuFeatures cpu_features() {
  CpuFeatures found;
  const Registers one = cpuid(1, 0);
  const Registers seven = cpuid(7, 0);
  if (!bit(one.ecx, 27)) return found;  // OSXSAVE
  const unsigned states = saved_states();
  constexpr unsigned kYmm = 0x06;
  constexpr unsigned kZmm = 0xe6;
  const bool fma_f16c = bit(one.ecx, 12) && bit(one.ecx, 29);
  found.avx2 = (states & kYmm) == kYmm && fma_f16c && bit(seven.ebx, 5);
  found.avx512 = found.avx2 && (states & kZmm) == kZmm && bit(seven.ebx, 16) && bit(seven.ebx, 17) &&
                 bit(seven.ebx, 30) && bit(seven.ebx, 31);
  found.avx512_vnni = found.avx512 && bit(seven.ecx, 11);
  found.avx512_bf16 = found.avx512 && bit(cpuid(7, 1).eax, 5);
  return found;
}
#else
CpuFeatures cpu_features() { return {}; }
#endif

}  // namespace fixpoint::kernels::cpu
