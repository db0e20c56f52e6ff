#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

/// Sixteen lanes in two AVX2 registers. Private to one source file: see simd_avx512.h.
namespace fixpoint::kernels::cpu {
namespace {

struct Avx2 {
  struct F {
    __m256 a, b;
  };
  struct I {
    __m256i a, b;
  };
  struct B {
    __m256i a, b;
  };

  static __m256i mask_below(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }

  static F zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static F set(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
  static F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static F load_some(const float* p, int n) {
    return {_mm256_maskload_ps(p, mask_below(n)), _mm256_maskload_ps(p + 8, mask_below(n - 8))};
  }
  static void store(float* p, F x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
  }
  static void store_some(float* p, F x, int n) {
    _mm256_maskstore_ps(p, mask_below(n), x.a);
    _mm256_maskstore_ps(p + 8, mask_below(n - 8), x.b);
  }

  static F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  static F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  static F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  static F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  static F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static F min(F x, F y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  static F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
  static F neg_inf_from(F x, int n) {
    const __m256 inf = _mm256_set1_ps(-__builtin_inff());
    return {_mm256_blendv_ps(inf, x.a, _mm256_castsi256_ps(mask_below(n))),
            _mm256_blendv_ps(inf, x.b, _mm256_castsi256_ps(mask_below(n - 8)))};
  }
  static F keep_at_least(F v, F x, float bound) {
    const __m256 limit = _mm256_set1_ps(bound);
    return {_mm256_and_ps(v.a, _mm256_cmp_ps(x.a, limit, _CMP_GE_OQ)),
            _mm256_and_ps(v.b, _mm256_cmp_ps(x.b, limit, _CMP_GE_OQ))};
  }
  static F round(F x) {
    constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(x.a, kNearest), _mm256_round_ps(x.b, kNearest)};
  }
  static __m256 power(__m256 n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
  }
  static F scale_by_power(F x, F n) { return {_mm256_mul_ps(x.a, power(n.a)), _mm256_mul_ps(x.b, power(n.b))}; }
  static float sum(F x) {
    const __m256 y = _mm256_add_ps(x.a, x.b);
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  static float highest(F x) {
    const __m256 y = _mm256_max_ps(x.a, x.b);
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
  }

  static __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  static F from_f16(const std::uint16_t* p) { return {_mm256_cvtph_ps(load128(p)), _mm256_cvtph_ps(load128(p + 8))}; }
  static __m256 from_bf16_half(const std::uint16_t* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load128(p)), 16));
  }
  static F from_bf16(const std::uint16_t* p) { return {from_bf16_half(p), from_bf16_half(p + 8)}; }
  static void to_f16(std::uint16_t* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
  }
  static __m256i bf16_bits(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  }
  static void to_bf16(std::uint16_t* p, F x) {
    const __m256i mixed = _mm256_packus_epi32(bf16_bits(x.a), bf16_bits(x.b));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(mixed, 0xd8));
  }
  static F from_u8(const std::uint8_t* p) {
    const __m128i x = load128(p);
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(x)), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(x, 8)))};
  }
  static F from_i8(const std::uint8_t* p) {
    const __m128i x = load128(p);
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)))};
  }
  static F from_nibbles(const std::byte* p, bool high) {
    const __m128i bytes = high ? _mm_srli_epi16(load128(p), 4) : load128(p);
    const __m128i x = _mm_and_si128(bytes, _mm_set1_epi8(15));
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(x)), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(x, 8)))};
  }
  static F from_e4m3(const std::uint8_t* p) {
    const __m256i wide = _mm256_slli_epi16(_mm256_cvtepu8_epi16(load128(p)), 8);
    const __m256i half = _mm256_and_si256(_mm256_srai_epi16(wide, 1), _mm256_set1_epi16(static_cast<short>(0xbf80)));
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(half)), _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1))};
  }
  static F to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
  static void to_i8(std::int8_t* p, F x) {
    const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b));
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  }
  static F abs(F x) {
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    return {_mm256_and_ps(x.a, mask), _mm256_and_ps(x.b, mask)};
  }

  static B load_bytes(const std::byte* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
  }
  static B low_nibbles(B x) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(x.a, mask), _mm256_and_si256(x.b, mask)};
  }
  static B high_nibbles(B x) { return low_nibbles({_mm256_srli_epi16(x.a, 4), _mm256_srli_epi16(x.b, 4)}); }
  template <int kShift, int kMask>
  static __m256i merge_half(__m256i low, __m256i high) {
    const __m256i moved = kShift >= 0 ? _mm256_slli_epi16(high, kShift) : _mm256_srli_epi16(high, -kShift);
    return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(kMask)));
  }
  template <int kShift, int kMask>
  static B merge(B low, B high) {
    return {merge_half<kShift, kMask>(low.a, high.a), merge_half<kShift, kMask>(low.b, high.b)};
  }

  static I int_sub(I a, I b) { return {_mm256_sub_epi32(a.a, b.a), _mm256_sub_epi32(a.b, b.b)}; }
  static I int_set(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
  static __m256i four(const std::int8_t* x) {
    std::int32_t word = 0;
    std::memcpy(&word, x, sizeof word);
    return _mm256_set1_epi32(word);
  }
  // Exact for codes up to 127: a pair's sum fits 16 bits.
  static __m256i dot_half(__m256i acc, __m256i w, __m256i x) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1)));
  }
  static I dot(I acc, B w, const std::int8_t* x) {
    const __m256i f = four(x);
    return {dot_half(acc.a, w.a, f), dot_half(acc.b, w.b, f)};
  }
  // Codes with 128 added would overflow the pair's sum: magnitude times signed x.
  static __m256i q8_dot_half(__m256i acc, __m256i w, __m256i x) {
    const __m256i code = _mm256_xor_si256(w, _mm256_set1_epi8(-128));
    return dot_half(acc, _mm256_abs_epi8(code), _mm256_sign_epi8(x, code));
  }
  template <int kBits>
  static I int_shifted(const std::int32_t* x) { return int_set(*x * (1 << kBits)); }
  static I q8_start(const std::int32_t* /*neg_sum*/) { return int_set(0); }
  static I q8_dot(I acc, B w, const std::int8_t* x) {
    const __m256i f = four(x);
    return {q8_dot_half(acc.a, w.a, f), q8_dot_half(acc.b, w.b, f)};
  }
};

}  // namespace
}  // namespace fixpoint::kernels::cpu
