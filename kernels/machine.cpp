#include "kernels/machine.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/huge_pages.h"
#include "kernels/cpu/thread_team.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fixpoint::kernels {
namespace {

using Clock = std::chrono::steady_clock;
using Loop = float (*)(std::int64_t rounds);

// Twenty independent sums: more than latency times instructions per cycle on any present machine.
constexpr int kChains = 20;

float fma_portable(std::int64_t rounds) {
  float sum[kChains];
  for (int c = 0; c < kChains; ++c) sum[c] = static_cast<float>(c);
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (float& s : sum) s = s * 0.999F + 0.001F;
  }
  float total = 0;
  for (const float s : sum) total += s;
  return total;
}

#if defined(__x86_64__)
// As assembly, because a compiler would compute twenty equal chains once, and g++ 12 surrounds the intrinsics of the dot
// products with register moves.
__attribute__((target("avx2,fma"))) float fma_avx2(std::int64_t rounds) {
  constexpr int kSums = 12;
  __m256 sum[kSums];
#pragma GCC unroll 12
  for (int c = 0; c < kSums; ++c) sum[c] = _mm256_setzero_ps();
  const __m256 a = _mm256_set1_ps(0.999F);
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < kSums; ++c) __asm__("vfmadd231ps %1, %1, %0" : "+x"(sum[c]) : "x"(a));
  }
#pragma GCC unroll 12
  for (int c = 1; c < kSums; ++c) sum[0] = _mm256_add_ps(sum[0], sum[c]);
  return _mm256_cvtss_f32(sum[0]);
}

__attribute__((target("avx512f"))) float fma_avx512(std::int64_t rounds) {
  __m512 sum[kChains];
#pragma GCC unroll 20
  for (int c = 0; c < kChains; ++c) sum[c] = _mm512_setzero_ps();
  const __m512 a = _mm512_set1_ps(0.999F);
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 20
    for (int c = 0; c < kChains; ++c) __asm__("vfmadd231ps %1, %1, %0" : "+v"(sum[c]) : "v"(a));
  }
#pragma GCC unroll 20
  for (int c = 1; c < kChains; ++c) sum[0] = _mm512_add_ps(sum[0], sum[c]);
  return _mm512_cvtss_f32(sum[0]);
}

__attribute__((target("avx512f,avx512bf16"))) float bf16_avx512(std::int64_t rounds) {
  __m512 sum[kChains];
#pragma GCC unroll 20
  for (int c = 0; c < kChains; ++c) sum[c] = _mm512_setzero_ps();
  const __m512i a = _mm512_set1_epi32(0x3c003c00);
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 20
    for (int c = 0; c < kChains; ++c) __asm__("vdpbf16ps %1, %1, %0" : "+v"(sum[c]) : "v"(a));
  }
#pragma GCC unroll 20
  for (int c = 1; c < kChains; ++c) sum[0] = _mm512_add_ps(sum[0], sum[c]);
  return _mm512_cvtss_f32(sum[0]);
}

__attribute__((target("avx512f,avx512vnni"))) float int8_avx512(std::int64_t rounds) {
  __m512i sum[kChains];
#pragma GCC unroll 20
  for (int c = 0; c < kChains; ++c) sum[c] = _mm512_setzero_si512();
  const __m512i a = _mm512_set1_epi32(0x01010101);
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 20
    for (int c = 0; c < kChains; ++c) __asm__("vpdpbusd %1, %1, %0" : "+v"(sum[c]) : "v"(a));
  }
#pragma GCC unroll 20
  for (int c = 1; c < kChains; ++c) sum[0] = _mm512_add_epi32(sum[0], sum[c]);
  return static_cast<float>(_mm_cvtsi128_si32(_mm512_castsi512_si128(sum[0])));
}
#endif

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The best of several short runs: what another process took is not the machine's limit.
double best_rate(cpu::ThreadTeam& team, Loop loop, double operations_per_round) {
  constexpr std::int64_t kRounds = 400'000;
  volatile std::int64_t rounds = kRounds;  // keeps the compiler from computing the loop once, before the clock
  double best = 0;
  for (int run = 0; run < 8; ++run) {
    const auto start = Clock::now();
    team.run(team.size(), [&](std::int64_t, int) {
      volatile float sink = loop(rounds);
      static_cast<void>(sink);
    });
    best = std::max(best, operations_per_round * kRounds * team.size() / seconds_since(start));
  }
  return best;
}

std::uint64_t read_all(const std::uint64_t* from, std::int64_t words) {
  constexpr int kStreams = 4;
  const std::int64_t stream = words / kStreams;
  std::uint64_t sum[kStreams * 8] = {};
  for (std::int64_t i = 0; i + 8 <= stream; i += 8) {
    for (int s = 0; s < kStreams; ++s) {
      for (int j = 0; j < 8; ++j) sum[s * 8 + j] ^= from[s * stream + i + j];
    }
  }
  std::uint64_t total = 0;
  for (const std::uint64_t s : sum) total ^= s;
  return total;
}

double read_bandwidth(cpu::ThreadTeam& team) {
  constexpr std::int64_t kBytesPerThread = 192LL << 20;
  constexpr std::int64_t kWords = kBytesPerThread / 8;
  const auto bytes = static_cast<std::size_t>(kBytesPerThread) * static_cast<std::size_t>(team.size());
  const Buffer memory = cpu::allocate_huge(bytes);
  auto* words = reinterpret_cast<std::uint64_t*>(memory.data());
  team.run(team.size(), [&](std::int64_t part, int) { std::fill_n(words + part * kWords, kWords, part + 1); });
  double best = 0;
  for (int run = 0; run < 12; ++run) {
    const auto start = Clock::now();
    team.run(team.size(), [&](std::int64_t part, int) {
      volatile std::uint64_t sink = read_all(words + part * kWords, kWords);
      static_cast<void>(sink);
    });
    best = std::max(best, static_cast<double>(kBytesPerThread) * team.size() / seconds_since(start));
  }
  return best;
}

}  // namespace

MachineLimits measure_machine_limits(int threads) {
  cpu::ThreadTeam team(threads);
  MachineLimits limits;
  limits.read_bytes_per_s = read_bandwidth(team);
  const cpu::CpuFeatures has = cpu::cpu_features();
#if defined(__x86_64__)
  if (has.avx512) {
    limits.fp32_flops = best_rate(team, fma_avx512, 2.0 * 16 * kChains);
  } else if (has.avx2) {
    limits.fp32_flops = best_rate(team, fma_avx2, 2.0 * 8 * 12);
  } else {
    limits.fp32_flops = best_rate(team, fma_portable, 2.0 * kChains);
  }
  if (has.avx512_bf16) limits.bf16_flops = best_rate(team, bf16_avx512, 2.0 * 32 * kChains);
  if (has.avx512_vnni) limits.int8_ops = best_rate(team, int8_avx512, 2.0 * 64 * kChains);
#else
  static_cast<void>(has);
  limits.fp32_flops = best_rate(team, fma_portable, 2.0 * kChains);
#endif
  return limits;
}

}  // namespace fixpoint::kernels
