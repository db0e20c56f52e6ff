#include "kernels/kv_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/float8.h"
#include "kernels/half.h"
#include "kernels/kv_row.h"
#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels {
namespace {

constexpr std::array kQuantised{KvType::int8, KvType::fp8_e4m3, KvType::int4};

Floats round_trip(KvType type, const Floats& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<std::uint8_t> codes(values.size());
  std::vector<std::uint16_t> scales(static_cast<std::size_t>(kv_scales(type, n)));
  quantize_kv(type, values.data(), n, codes.data(), scales.data());
  Floats back(values.size());
  dequantize_kv(type, codes.data(), scales.data(), n, back.data());
  return back;
}

TEST(KvTypeTest, NamesRoundTripInAnyCase) {
  for (const KvType type : kKvTypes) EXPECT_EQ(parse_kv_type(to_string(type)), type);
  EXPECT_EQ(parse_kv_type("fp8"), KvType::fp8_e4m3);
  EXPECT_EQ(parse_kv_type("bf16"), KvType::bf16);
  EXPECT_EQ(parse_kv_type("int8"), KvType::int8);
  for (const char* none : {"", "f", "int", "q4_0", "F160"}) EXPECT_EQ(parse_kv_type(none), std::nullopt) << none;
}

TEST(KvTypeTest, ARowTakesItsCodesAndItsScales) {
  EXPECT_EQ(kv_row_bytes(KvType::f32, 64), 256);
  EXPECT_EQ(kv_row_bytes(KvType::bf16, 64), 128);
  EXPECT_EQ(kv_row_bytes(KvType::int8, 64), 64 + 2);
  EXPECT_EQ(kv_row_bytes(KvType::fp8_e4m3, 128), 128 + 2);
  EXPECT_EQ(kv_row_bytes(KvType::int4, 128), 64 + 4 * 4);
  EXPECT_EQ(kv_row_bytes(KvType::int4, 33), 17 + 2 * 4) << "a byte for the odd one, a scale and an offset for its group";
}

TEST(KvTypeTest, RoundTripErrorFitsTheTypesBits) {
  Random random(1);
  const Floats values = random.normal(64);
  EXPECT_LT(relative_error(values, round_trip(KvType::int8, values)), 8e-3);
  EXPECT_LT(relative_error(values, round_trip(KvType::fp8_e4m3, values)), 3e-2);
  EXPECT_LT(relative_error(values, round_trip(KvType::int4, values)), 1e-1);
}

TEST(KvTypeTest, NoElementErrsByMoreThanHalfAStep) {
  Random random(2);
  for (int round = 0; round < 200; ++round) {
    const float size = std::pow(10.0F, static_cast<float>(random.between(-2, 3)));
    const Floats values = random.normal(random.between(1, 150), size);
    float peak = 0.0F;
    for (const float x : values) peak = std::max(peak, std::abs(x));
    const Floats int8 = round_trip(KvType::int8, values);
    const Floats fp8 = round_trip(KvType::fp8_e4m3, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(int8[i], values[i], peak / 127 * 0.51F);
      EXPECT_NEAR(fp8[i], values[i], std::max(std::abs(values[i]) / 15.9F, peak / 448 * 0x1p-10F));
    }
    const Floats int4 = round_trip(KvType::int4, values);
    for (std::size_t start = 0; start < values.size(); start += 32) {
      const auto end = std::min(values.size(), start + 32);
      const auto [low, high] = std::minmax_element(values.begin() + static_cast<std::ptrdiff_t>(start), values.begin() + static_cast<std::ptrdiff_t>(end));
      for (std::size_t i = start; i < end; ++i) EXPECT_NEAR(int4[i], values[i], (*high - *low) / 15 * 0.51F + peak * 0x1p-11F);
    }
  }
}

TEST(KvTypeTest, ZeroStaysZeroAndAConstantRowIsKept) {
  for (const KvType type : kQuantised) {
    for (const float x : round_trip(type, Floats(70, 0.0F))) EXPECT_EQ(x, 0.0F) << to_string(type);
    for (const float x : round_trip(type, Floats(70, -1.5F))) EXPECT_NEAR(x, -1.5F, 1e-3F) << to_string(type);
  }
}

TEST(KvTypeTest, WhatNoScaleHoldsIsBoundedAndANanIsZero) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const KvType type : kQuantised) {
    Floats values(40, 1.0F);
    values[3] = kInf;
    values[4] = -kInf;
    values[5] = 3e38F;
    values[6] = std::numeric_limits<float>::quiet_NaN();
    values[38] = -1e30F;
    for (const float x : round_trip(type, values)) EXPECT_TRUE(std::isfinite(x)) << to_string(type);
    EXPECT_GT(round_trip(type, values)[3], 6e4F);
    EXPECT_LT(round_trip(type, values)[4], -6e4F);
    values.assign(40, 0.25F);
    values[6] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(round_trip(type, values)[6], 0.0F);
    EXPECT_NEAR(round_trip(type, values)[7], 0.25F, 2e-2F);
  }
}

TEST(KvTypeTest, TinyValuesLoseNoMoreThanTheScaleDoes) {
  Random random(3);
  for (const KvType type : kQuantised) {
    const Floats values = random.normal(64, 1e-4F);  // scales are subnormal F16 numbers here
    EXPECT_LT(relative_error(values, round_trip(type, values)), 0.15) << to_string(type);
    for (const float x : round_trip(type, random.normal(64, 1e-12F))) EXPECT_NEAR(x, 0.0F, 1e-7F) << to_string(type);
  }
}

TEST(KvTypeTest, TiesGoToTheEvenCode) {
  Floats values(32, 0.0F);
  values[0] = 127.0F;  // a scale of exactly one
  values[1] = 2.5F;
  values[2] = 3.5F;
  values[3] = -0.5F;
  const Floats int8 = round_trip(KvType::int8, values);
  EXPECT_EQ(int8[1], 2.0F);
  EXPECT_EQ(int8[2], 4.0F);
  EXPECT_EQ(int8[3], 0.0F);
  values[0] = 15.0F;
  values[3] = 0.5F;
  const Floats int4 = round_trip(KvType::int4, values);
  EXPECT_EQ(int4[1], 2.0F);
  EXPECT_EQ(int4[2], 4.0F);
  EXPECT_EQ(int4[3], 0.0F);
}

TEST(Float8Test, EveryCodeRoundTrips) {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;
    EXPECT_EQ(f32_to_e4m3(e4m3_to_f32(static_cast<std::uint8_t>(code))), code);
  }
  EXPECT_TRUE(std::isnan(e4m3_to_f32(0x7f)));
  EXPECT_EQ(e4m3_to_f32(0x7e), 448.0F);
  EXPECT_EQ(e4m3_to_f32(0x01), 0x1p-9F);
  EXPECT_EQ(e4m3_to_f32(0x38), 1.0F);
  EXPECT_EQ(e4m3_to_f32(0xb8), -1.0F);
}

TEST(Float8Test, RoundsToTheNearestOfItsNeighboursAndTiesToEven) {
  for (int code = 0; code < 0x7e; ++code) {
    const float below = e4m3_to_f32(static_cast<std::uint8_t>(code));
    const float above = e4m3_to_f32(static_cast<std::uint8_t>(code + 1));
    const float middle = (below + above) / 2;  // exact
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, 0.0F)), code);
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, 1000.0F)), code + 1);
    EXPECT_EQ(f32_to_e4m3(middle), code % 2 == 0 ? code : code + 1);
    EXPECT_EQ(f32_to_e4m3(-middle), 0x80 | (code % 2 == 0 ? code : code + 1));
  }
  EXPECT_EQ(f32_to_e4m3(449.0F), 0x7e);
  EXPECT_EQ(f32_to_e4m3(-std::numeric_limits<float>::infinity()), 0xfe);
}

}  // namespace
}  // namespace fixpoint::kernels
