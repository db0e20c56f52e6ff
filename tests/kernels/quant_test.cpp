#include "kernels/quant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/half.h"
#include "tests/kernels/backend_fixture.h"

namespace fixpoint::kernels {
namespace {

double round_trip_error(DType type) {
  std::mt19937 rng(7);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> values(4096);
  std::ranges::generate(values, [&] { return normal(rng); });
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> stored(static_cast<std::size_t>(row_bytes(type, n)));
  quantize_row(type, values.data(), stored.data(), n);
  std::vector<float> back(values.size());
  dequantize_row(type, stored.data(), back.data(), n);
  return relative_error(values, back);
}

TEST(QuantTest, RoundTripErrorFitsTheTypesBits) {
  EXPECT_EQ(round_trip_error(DType::f32), 0.0);
  EXPECT_LT(round_trip_error(DType::f16), 3e-4);
  EXPECT_LT(round_trip_error(DType::bf16), 2.5e-3);
  EXPECT_LT(round_trip_error(DType::q8_0), 7e-3);
  EXPECT_LT(round_trip_error(DType::q6_k), 2.5e-2);
  EXPECT_LT(round_trip_error(DType::q5_0), 5e-2);
  EXPECT_LT(round_trip_error(DType::q5_1), 5e-2);
  EXPECT_LT(round_trip_error(DType::q5_k), 5e-2);
  EXPECT_LT(round_trip_error(DType::q4_0), 1e-1);
  EXPECT_LT(round_trip_error(DType::q4_1), 1e-1);
  EXPECT_LT(round_trip_error(DType::q4_k), 1e-1);
}

struct Golden {
  DType type;
  std::vector<std::uint8_t> block;
  std::vector<float> values;
};

TEST(QuantTest, BlocksDecodeAsAnIndependentReaderDecodesThem) {
  const std::vector<Golden> goldens = {
#include "tests/kernels/goldens/goldens.inc"
  };
  ASSERT_EQ(goldens.size(), 8U);
  for (const Golden& golden : goldens) {
    ASSERT_EQ(static_cast<std::int64_t>(golden.block.size()), traits(golden.type).block_bytes);
    const auto n = static_cast<std::int64_t>(golden.values.size());
    ASSERT_EQ(n, traits(golden.type).block_elements);
    std::vector<float> values(golden.values.size());
    dequantize_row(golden.type, reinterpret_cast<const std::byte*>(golden.block.data()), values.data(), n);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(values[i], golden.values[i], 1e-6F * (1.0F + std::fabs(golden.values[i])))
          << traits(golden.type).name << " value " << i;
    }
  }
}

TEST(QuantTest, RefusesPartsOfABlock) {
  std::vector<std::byte> bytes(64);
  std::vector<float> values(64);
  EXPECT_THROW(dequantize_row(DType::q4_0, bytes.data(), values.data(), 31), std::invalid_argument);
  EXPECT_THROW(quantize_row(DType::q4_k, values.data(), bytes.data(), 64), std::invalid_argument);
}

TEST(HalfTest, EveryF16SurvivesARoundTrip) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto h = static_cast<std::uint16_t>(bits);
    const float f = f16_to_f32(h);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(f))));
    } else {
      EXPECT_EQ(f32_to_f16(f), h);
    }
  }
}

TEST(HalfTest, RoundsToNearestEven) {
  EXPECT_EQ(f32_to_f16(1.0F + 0x1p-11F), 0x3c00);          // halfway: down to even
  EXPECT_EQ(f32_to_f16(1.0F + 0x1p-10F + 0x1p-11F), 0x3c02);  // halfway: up to even
  EXPECT_EQ(f32_to_f16(65519.0F), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(f32_to_f16(-0x1p-24F), 0x8001);
  EXPECT_EQ(f32_to_bf16(1.0F + 0x1p-8F), 0x3f80);
  EXPECT_EQ(f32_to_bf16(1.0F + 0x1p-7F + 0x1p-8F), 0x3f82);
}

}  // namespace
}  // namespace fixpoint::kernels
