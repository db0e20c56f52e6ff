#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

/// Sixteen lanes in one AVX-512 register. The types are in an unnamed namespace, and every kernel is a template over
/// one of them: what a source file compiles for its instruction set stays in it, and no machine can run it by way of a
/// shared inline function.
namespace fixpoint::kernels::cpu {
namespace {

struct Avx512 {
  using F = __m512;
  using I = __m512i;
  using B = __m512i;

  static __mmask16 mask_below(int n) {
    return n >= 16 ? static_cast<__mmask16>(0xffff) : n <= 0 ? static_cast<__mmask16>(0) : static_cast<__mmask16>((1U << n) - 1U);
  }

  static F zero() { return _mm512_setzero_ps(); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static F load_some(const float* p, int n) { return _mm512_maskz_loadu_ps(mask_below(n), p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static void store_some(float* p, F x, int n) { _mm512_mask_storeu_ps(p, mask_below(n), x); }

  static F add(F x, F y) { return _mm512_add_ps(x, y); }
  static F sub(F x, F y) { return _mm512_sub_ps(x, y); }
  static F mul(F x, F y) { return _mm512_mul_ps(x, y); }
  static F div(F x, F y) { return _mm512_div_ps(x, y); }
  static F max(F x, F y) { return _mm512_max_ps(x, y); }
  static F min(F x, F y) { return _mm512_min_ps(x, y); }
  static F fma(F x, F y, F z) { return _mm512_fmadd_ps(x, y, z); }
  static F neg_inf_from(F x, int n) { return _mm512_mask_blend_ps(mask_below(n), _mm512_set1_ps(-__builtin_inff()), x); }
  static F keep_at_least(F v, F x, float bound) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(bound), _CMP_GE_OQ), v);
  }
  static F round(F x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F scale_by_power(F x, F n) { return _mm512_scalef_ps(x, n); }
  static __m256 upper_half(F x) { return _mm512_extractf32x8_ps(x, 1); }
  static float sum(F x) {
    const __m256 y = _mm256_add_ps(_mm512_castps512_ps256(x), upper_half(x));
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  static float highest(F x) {
    const __m256 y = _mm256_max_ps(_mm512_castps512_ps256(x), upper_half(x));
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
  }

  static __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
  static F from_f16(const std::uint16_t* p) { return _mm512_cvtph_ps(load256(p)); }
  static F from_bf16(const std::uint16_t* p) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load256(p)), 16));
  }
  static void to_f16(std::uint16_t* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }
  static void to_bf16(std::uint16_t* p, F x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i quiet = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(quiet, 16)));
  }
  static F from_u8(const std::uint8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load128(p))); }
  static F from_i8(const std::uint8_t* p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load128(p))); }
  /// Sixteen codes of four bits: the low halves of sixteen bytes, or the high ones.
  static F from_nibbles(const std::byte* p, bool high) {
    const __m128i x = high ? _mm_srli_epi16(load128(p), 4) : load128(p);
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_and_si128(x, _mm_set1_epi8(15))));
  }
  /// E4M3 numbers times 2^-8: as F16 bits, their exponent counts from 15 and not from 7.
  static F from_e4m3(const std::uint8_t* p) {
    const __m256i wide = _mm256_slli_epi16(_mm256_cvtepu8_epi16(load128(p)), 8);
    return _mm512_cvtph_ps(_mm256_and_si256(_mm256_srai_epi16(wide, 1), _mm256_set1_epi16(static_cast<short>(0xbf80))));
  }
  static F to_float(I x) { return _mm512_cvtepi32_ps(x); }
  static void to_i8(std::int8_t* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(x)));
  }
  static F abs(F x) { return _mm512_abs_ps(x); }

  static B load_bytes(const std::byte* p) { return _mm512_loadu_si512(p); }
  static B low_nibbles(B x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
  static B high_nibbles(B x) { return low_nibbles(_mm512_srli_epi16(x, 4)); }
  template <int kShift, int kMask>
  static B merge(B low, B high) {
    constexpr unsigned kLeft = kShift >= 0 ? kShift : 0;
    constexpr unsigned kRight = kShift < 0 ? -kShift : 0;
    const __m512i moved = kShift >= 0 ? _mm512_slli_epi16(high, kLeft) : _mm512_srli_epi16(high, kRight);
    constexpr int kAndOr = 0xf8;  // first | (second & third)
    return _mm512_ternarylogic_epi32(low, moved, _mm512_set1_epi8(kMask), kAndOr);
  }

  static I int_sub(I a, I b) { return _mm512_sub_epi32(a, b); }
  static I int_set(std::int32_t x) { return _mm512_set1_epi32(x); }
  static __m512i four(const std::int8_t* x) {
    std::int32_t word = 0;
    std::memcpy(&word, x, sizeof word);
    return _mm512_set1_epi32(word);
  }
  // Exact for codes up to 127: a pair's sum fits 16 bits.
  static I dot_four(I acc, B w, __m512i x) {
    return _mm512_add_epi32(acc, _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), _mm512_set1_epi16(1)));
  }
  static I dot(I acc, B w, const std::int8_t* x) { return dot_four(acc, w, four(x)); }
  // Codes with 128 added would overflow the pair's sum: magnitude times signed x.
  // Shifted after the broadcast: one instruction that reads memory, where a shifted scalar would cross register files.
  template <int kBits>
  static I int_shifted(const std::int32_t* x) { return _mm512_slli_epi32(_mm512_set1_epi32(*x), kBits); }
  static I q8_start(const std::int32_t* /*neg_sum*/) { return _mm512_setzero_si512(); }
  static I q8_dot(I acc, B w, const std::int8_t* x) {
    const __m512i code = _mm512_xor_si512(w, _mm512_set1_epi8(-128));
    const __m512i f = four(x);
    const __m512i signed_x = _mm512_mask_sub_epi8(f, _mm512_movepi8_mask(code), _mm512_setzero_si512(), f);
    return dot_four(acc, _mm512_abs_epi8(code), signed_x);
  }
};

}  // namespace
}  // namespace fixpoint::kernels::cpu
