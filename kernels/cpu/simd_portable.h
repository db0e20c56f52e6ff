#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/float8.h"
#include "kernels/half.h"

/// Sixteen lanes in the compilers' own vector types, which become whatever registers a machine has. Private to one
/// source file: see simd_avx512.h.
namespace fixpoint::kernels::cpu {
namespace {

struct Portable {
  using F = float __attribute__((vector_size(64)));
  using I = std::int32_t __attribute__((vector_size(64)));
  using U = std::uint32_t __attribute__((vector_size(64)));
  using B = U;  // sixteen words of four bytes

  static I iota() { return I{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}; }
  static F select(I mask, F yes, F no) { return reinterpret_cast<F>((reinterpret_cast<I>(yes) & mask) | (reinterpret_cast<I>(no) & ~mask)); }

  static F zero() { return F{}; }
  static F set(float x) { return F{} + x; }
  static F load(const float* p) {
    F r;
    std::memcpy(&r, p, sizeof r);
    return r;
  }
  static F load_some(const float* p, int n) {
    F r{};
    std::memcpy(&r, p, static_cast<std::size_t>(n) * sizeof(float));
    return r;
  }
  static void store(float* p, F a) { std::memcpy(p, &a, sizeof a); }
  static void store_some(float* p, F a, int n) { std::memcpy(p, &a, static_cast<std::size_t>(n) * sizeof(float)); }

  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F div(F a, F b) { return a / b; }
  static F max(F a, F b) { return select(a > b, a, b); }
  static F min(F a, F b) { return select(a < b, a, b); }
  /// a * b + c, rounded twice.
  static F fma(F a, F b, F c) { return a * b + c; }
  static F neg_inf_from(F a, int n) { return select(iota() < n, a, set(-__builtin_inff())); }
  /// a where x >= bound, else 0.
  static F keep_at_least(F a, F x, float bound) { return select(x >= bound, a, F{}); }
  static F round(F a) {
    constexpr float kMagic = 12582912.0F;  // 1.5 * 2^23: the sum has no fraction bits
    return (a + kMagic) - kMagic;
  }
  /// a * 2^n for whole n in -126..127.
  static F scale_by_power(F a, F n) {
    return a * reinterpret_cast<F>((__builtin_convertvector(n, I) + 127) << 23);
  }
  static float sum(F a) {
    float s = 0.0F;
    for (int i = 0; i < 16; ++i) s += a[i];
    return s;
  }
  static float highest(F a) {
    float s = a[0];
    for (int i = 1; i < 16; ++i) s = a[i] > s ? a[i] : s;
    return s;
  }

  [[gnu::noinline]] static F from_f16(const std::uint16_t* p) {
    float r[16];
    for (int i = 0; i < 16; ++i) r[i] = f16_to_f32(p[i]);
    return load(r);
  }
  [[gnu::noinline]] static F from_bf16(const std::uint16_t* p) {
    float r[16];
    for (int i = 0; i < 16; ++i) r[i] = bf16_to_f32(p[i]);
    return load(r);
  }
  [[gnu::noinline]] static void to_f16(std::uint16_t* p, F a) {
    for (int i = 0; i < 16; ++i) p[i] = f32_to_f16(a[i]);
  }
  [[gnu::noinline]] static void to_bf16(std::uint16_t* p, F a) {
    for (int i = 0; i < 16; ++i) p[i] = f32_to_bf16(a[i]);
  }
  template <class Byte>
  [[gnu::noinline]] static F from_bytes(const std::uint8_t* p) {
    float r[16];
    for (int i = 0; i < 16; ++i) r[i] = static_cast<float>(static_cast<Byte>(p[i]));
    return load(r);
  }
  static F from_u8(const std::uint8_t* p) { return from_bytes<std::uint8_t>(p); }
  static F from_i8(const std::uint8_t* p) { return from_bytes<std::int8_t>(p); }
  [[gnu::noinline]] static F from_nibbles(const std::byte* p, bool high) {
    float r[16];
    for (int i = 0; i < 16; ++i) r[i] = static_cast<float>((std::to_integer<int>(p[i]) >> (high ? 4 : 0)) & 15);
    return load(r);
  }
  [[gnu::noinline]] static F from_e4m3(const std::uint8_t* p) {
    float r[16];
    for (int i = 0; i < 16; ++i) r[i] = e4m3_to_f32(p[i]) * 0x1p-8F;
    return load(r);
  }
  static F to_float(I a) { return __builtin_convertvector(a, F); }
  /// Whole numbers within -127..127.
  static void to_i8(std::int8_t* p, F a) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(a[i]);
  }
  static F abs(F a) { return reinterpret_cast<F>(reinterpret_cast<I>(a) & 0x7fffffff); }

  static B load_bytes(const std::byte* p) {
    B b;
    std::memcpy(&b, p, sizeof b);
    return b;
  }
  static B low_nibbles(B b) { return b & 0x0f0f0f0fU; }
  static B high_nibbles(B b) { return (b >> 4) & 0x0f0f0f0fU; }
  /// low | ((high << shift) & mask), per byte; a negative shift goes right.
  template <int kShift, int kMask>
  static B merge(B low, B high) {
    const B moved = kShift >= 0 ? high << (kShift >= 0 ? kShift : 0) : high >> (kShift < 0 ? -kShift : 0);
    return low | (moved & (static_cast<std::uint32_t>(kMask) * 0x01010101U));
  }

  static I int_sub(I a, I b) { return a - b; }
  static I int_set(std::int32_t x) { return I{} + x; }
  /// acc + sum over four of w (unsigned) * x (signed); x is broadcast.
  static I dot(I acc, B w, const std::int8_t* x) {
    acc += reinterpret_cast<I>(w & 255U) * std::int32_t{x[0]};
    acc += reinterpret_cast<I>((w >> 8) & 255U) * std::int32_t{x[1]};
    acc += reinterpret_cast<I>((w >> 16) & 255U) * std::int32_t{x[2]};
    return acc + reinterpret_cast<I>(w >> 24) * std::int32_t{x[3]};
  }
  /// x * 2^kBits in every lane.
  template <int kBits>
  static I int_shifted(const std::int32_t* x) { return int_set(*x * (1 << kBits)); }
  static I q8_start(const std::int32_t* neg_sum) { return int_shifted<7>(neg_sum); }
  static I q8_dot(I acc, B w, const std::int8_t* x) { return dot(acc, w, x); }
};

}  // namespace
}  // namespace fixpoint::kernels::cpu
